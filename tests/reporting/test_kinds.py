from waterline.reporting.kinds import Kind, in_order, per_budget


def test_labels_name_what_tells_rows_apart():
    assert Kind("token-mean", method="sera").label == "Token-mean SERA"
    assert Kind(method="ce").label == "Direct CE"
    assert Kind(n0=16, method="sera").label == "SERA, N₀ = 16"
    assert Kind(n0=16, method="sera", p_hat="history").label == "SERA, N₀ = 16, history"
    assert Kind(n0=16, method="sera", p_hat="pilot").label == "SERA, N₀ = 16, pilot"
    pilot = Kind(n0=16, method="sera_pilot", p_hat="pilot")
    assert pilot.label == "SERA (pilot), N₀ = 16"
    assert pilot.titled("SERA (pilot) − MaxRL") == "SERA (pilot) − MaxRL, N₀ = 16"
    assert Kind("", 16, "sera", "", "n0-16_u0-0.1").label == "SERA, N₀ = 16 (n0-16_u0-0.1)"
    assert Kind(n0=16, method="sera").titled("SERA − MaxRL") == "SERA − MaxRL, N₀ = 16"


def test_rows_stand_as_expected_and_then_by_budget():
    kinds = [Kind(n0=n0, method=m) for n0 in (128, 16) for m in ("grpo", "sera", "maxrl")]
    kinds += [Kind(n0=16, method="sera", p_hat="pilot"), Kind(method="ce")]
    expected = per_budget(["ce", "maxrl", "sera"], kinds)
    assert [kind.label for kind in in_order(kinds, expected)] == [
        "Direct CE",
        "MaxRL, N₀ = 16",
        "SERA, N₀ = 16",
        "MaxRL, N₀ = 128",
        "SERA, N₀ = 128",
        "GRPO, N₀ = 16",
        "SERA, N₀ = 16, pilot",
        "GRPO, N₀ = 128",
    ]


def test_without_a_budget_the_expected_methods_are_still_named():
    kinds = per_budget(["ce", "maxrl"], [Kind(method="ce")])
    assert [kind.label for kind in kinds] == ["Direct CE", "MaxRL"]
