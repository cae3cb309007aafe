"""Starting and watching jobs: commands, local processes, Slurm. Nothing of the line imports it."""
