"""Rules: counts and rows against brute force, the real array, and errors that name the rule."""

from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.configurations import rules as module
from fieldcorr.configurations.constraints import constraints_of, settings_of
from fieldcorr.configurations.rules import (
    PRESETS,
    ContactGrid,
    count,
    enumerate_configurations,
)
from fieldcorr.configurations.text import configuration_ids, format_configuration
from fieldcorr.errors import ConfigurationError
from fieldcorr.model import Rules


def given_rules(**keys: Any) -> Rules:
    """Return rules as they are, without the checks of a model file."""
    return Rules.model_construct(**{"preset": "all", **keys})


def grid(*columns: list[float], width: float = 3.0, case: bool = False) -> ContactGrid:
    """Contacts in columns from left to right, each given by its rostral positions in mm."""
    places = [
        (-width * n, 0.0, z) for n, column in enumerate(columns) for z in sorted(column)[::-1]
    ]
    names = [str(e) for e in range(len(places))]
    if case:
        places.append((150.0, 30.0, -80.0))
        names.append("case")
    return ContactGrid(tuple(names), np.array(places) * 1e-3)


# Two columns of three side by side; 1-2-1 shifted by half a pitch; one row of three and the case.
PAIRS = grid([0, 8, 16], [0, 8, 16])
PAIRS_NEAR = {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}
DIAMOND = grid([4, 12], [0, 8, 16], [8])
DIAMOND_NEAR = {(0, 1), (2, 3), (3, 4), (0, 2), (0, 3), (1, 3), (1, 4), (3, 5)}
ROW = grid([0], [0], [0], case=True)
ROW_NEAR = {(0, 1), (1, 2)}
PADDLE = grid(
    [-17, -8.5, 0, 8.5, 17],
    [-21.25, -12.75, -4.25, 4.25, 12.75, 21.25],
    [-17, -8.5, 0, 8.5, 17],
    width=2.5,
)
ARRAYS = [(PAIRS, PAIRS_NEAR), (DIAMOND, DIAMOND_NEAR), (ROW, ROW_NEAR)]


def hangs_together(group: set[int], near: set[tuple[int, int]]) -> bool:
    """Join touching pieces until nothing changes; one piece is left if the group is connected."""
    pieces = [{e} for e in group]
    for e, f in near:
        if e in group and f in group:
            touched = [p for p in pieces if e in p or f in p]
            pieces = [p for p in pieces if p not in touched] + [set().union(*touched)]
    return len(pieces) <= 1


def all_near(group: set[int], near: set[tuple[int, int]]) -> bool:
    return all(pair in near for pair in combinations(sorted(group), 2))


@cache
def facts(number: int) -> list[dict[str, Any]]:
    """Say everything that rules ask for about all configurations of one of the arrays."""
    contacts, near = ARRAYS[number]
    body = {e for e in range(contacts.size) if contacts.names[e] != "case"}
    place = contacts.positions_m * 1e3
    found = []
    for row in product((-1, 0, 1), repeat=contacts.size):
        anodes = {e for e, sign in enumerate(row) if sign > 0}
        cathodes = {e for e, sign in enumerate(row) if sign < 0}
        groups = {"all": anodes | cathodes, "anodes": anodes, "cathodes": cathodes}
        pairs = combinations((anodes | cathodes) & body, 2)
        found.append(
            {
                "row": row,
                "value": dict(zip(contacts.names, row, strict=True)),
                "number": {what: len(group) for what, group in groups.items()},
                "near": {what for what in groups if all_near(groups[what] & body, near)} | {"any"},
                "one": {what for what in groups if hangs_together(groups[what] & body, near)},
                "extent": max(
                    (float(np.linalg.norm(place[e] - place[f])) for e, f in pairs), default=0
                ),
                "guarded": all(_is_guarded(e, anodes, contacts) for e in cathodes),
                "symmetric": all(m >= 0 and row[e] == row[m] for e, m in _images(contacts)),
            }
        )
    return found


def satisfies(known: dict[str, Any], rules: Rules) -> bool:
    """Tell in plain words whether a configuration obeys the rules."""
    value: dict[str, int] = known["value"]
    number: dict[str, int] = known["number"]

    def within(what: str, low: int | None, high: int | None, at_least: int) -> bool:
        return max(low or 0, at_least) <= number[what] <= (99 if high is None else high)

    signs = {"+": (1,), "-": (-1,), "any": (1, -1)}
    case = {"off": (0,), "anode": (0, 1), "any": (-1, 0, 1)}[rules.case or "anode"]
    return bool(
        within("cathodes", rules.cathodes_min, rules.cathodes_max, 1)
        and within("anodes", rules.anodes_min, rules.anodes_max, 1)
        and within("all", rules.active_min, rules.active_max, 2)
        and all(value[name] == 0 for name in (*rules.excluded, *rules.off))
        and all(value[name] in signs[sign] for name, sign in rules.on.items())
        and value.get("case", 0) in case
        and (rules.adjacent or "any") in known["near"]
        and (rules.extent_max_mm is None or known["extent"] <= rules.extent_max_mm + 1e-9)
        and all(group in known["one"] for group in rules.connected or ())
        and (rules.guarded != "cathodes" or known["guarded"])
        and (not rules.symmetric or known["symmetric"])
    )


def _is_guarded(e: int, anodes: set[int], contacts: ContactGrid) -> bool:
    """Look for anodes directly above and below in the same column."""
    place = contacts.positions_m
    column = [f for f in range(len(place)) if place[f, 0] == place[e, 0]]
    above = [f for f in column if place[f, 2] > place[e, 2]]
    below = [f for f in column if place[f, 2] < place[e, 2]]
    return (
        bool(above and below)
        and min(above, key=lambda f: place[f, 2]) in anodes
        and max(below, key=lambda f: place[f, 2]) in anodes
    )


def _images(contacts: ContactGrid) -> list[tuple[int, int]]:
    place = np.round(contacts.positions_m * 1e3, 6)
    body = [e for e in range(contacts.size) if contacts.names[e] != "case"]
    twice = place[body, 0].min() + place[body, 0].max()
    found = {(place[e, 0], place[e, 2]): e for e in body}
    return [(e, found.get((twice - place[e, 0], place[e, 2]), -1)) for e in body]


def brute_force(rules: Rules, number: int) -> NDArray[np.int8]:
    rows = [known["row"] for known in facts(number) if satisfies(known, rules)]
    found = np.array(rows, dtype=np.int8).reshape(-1, ARRAYS[number][0].size)
    return found[np.argsort(configuration_ids(found))]


# Mostly unsaid: a rule drawn for every key would leave nothing most of the time.
least = st.sampled_from([None, None, None, None, 1, 2, 3])
most = st.sampled_from([None, None, None, 1, 2, 3, 4, 5])
rule_sets = st.builds(
    given_rules,
    active_min=least,
    active_max=most,
    cathodes_min=least,
    cathodes_max=most,
    anodes_min=least,
    anodes_max=most,
    excluded=st.sampled_from([(), (), (), (), ("1",), ("0", "2")]),
    off=st.sampled_from([(), (), (), (), ("2",)]),
    on=st.sampled_from([{}, {}, {}, {"0": "-"}, {"1": "+"}, {"1": "any"}, {"0": "any", "1": "-"}]),
    adjacent=st.sampled_from([None, None, "any", "cathodes", "anodes", "all"]),
    extent_max_mm=st.sampled_from([None, None, None, None, 3.0, 5.0, 8.0, 10.0, 16.0]),
    connected=st.sampled_from([None, None, (), ("cathodes",), ("anodes",), ("cathodes", "anodes")]),
    guarded=st.sampled_from([None, None, None, None, "none", "cathodes"]),
    case=st.sampled_from([None, "off", "anode", "any"]),
)


@pytest.mark.slow
@settings(max_examples=400)
@given(rule_sets, st.integers(0, len(ARRAYS) - 1), st.booleans())
def test_every_rule_against_brute_force(rules: Rules, number: int, symmetric: bool) -> None:
    contacts, _ = ARRAYS[number]
    if symmetric and contacts is not DIAMOND:
        rules = rules.model_copy(update={"symmetric": True})
    wanted = brute_force(rules, number)
    if len(wanted) == 0:
        with pytest.raises(ConfigurationError, match="removed the last"):
            count(rules, contacts)
        return
    assert count(rules, contacts) == len(wanted)
    np.testing.assert_array_equal(enumerate_configurations(rules, contacts), wanted)


@pytest.mark.parametrize(("contacts", "near"), ARRAYS)
def test_neighbours_of_small_arrays(contacts: ContactGrid, near: set[tuple[int, int]]) -> None:
    found = {(int(e), int(f)) for e, f in np.argwhere(contacts.neighbours) if e < f}
    assert found == near
    assert np.array_equal(contacts.neighbours, contacts.neighbours.T)


def test_the_paddle_is_read_the_same_however_it_lies() -> None:
    assert np.count_nonzero(PADDLE.neighbours) == 2 * (13 + 20)
    assert PADDLE.mirror.tolist() == [*range(11, 16), *range(5, 11), *range(5)]
    assert PADDLE.guards[6] == (5, 7)
    turn = np.deg2rad(12.0)
    yaw = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
    pitch = np.array([[1, 0, 0], [0, np.cos(turn), -np.sin(turn)], [0, np.sin(turn), np.cos(turn)]])
    tilted = ContactGrid(PADDLE.names, PADDLE.positions_m @ (yaw @ pitch).T + [0.003, 0.01, -0.02])
    assert np.array_equal(tilted.neighbours, PADDLE.neighbours)
    assert np.array_equal(tilted.mirror, PADDLE.mirror)
    assert tilted.guards == PADDLE.guards
    extent = given_rules(extent_max_mm=8.5, preset="up-to-three")
    assert count(extent, tilted) == count(extent, PADDLE)


@pytest.mark.parametrize(
    ("preset", "wanted"),
    [
        ("all", 42_915_650),
        ("up-to-two", 240),
        ("up-to-three", 3600),
        ("up-to-four", 29_080),
        ("adjacent-bipole", 66),
        ("guarded-cathode", 10),
        ("single-cathode", 9200),
        ("programmer", 702),
    ],
)
def test_presets_leave_what_their_description_says(preset: str, wanted: int) -> None:
    assert count(given_rules(preset=preset), PADDLE) == wanted
    assert f"({wanted:,})".replace(",", " ") in PRESETS[preset].description
    if wanted < 5000:
        assert len(enumerate_configurations(given_rules(preset=preset), PADDLE)) == wanted


def test_every_preset_is_tested_and_known_to_the_model() -> None:
    for name in PRESETS:
        assert count(Rules.model_validate({"preset": name}), PADDLE) > 0
    with pytest.raises(ValueError, match="preset"):
        Rules.model_validate({"preset": "nothing"})


def test_a_key_of_the_model_overrides_the_preset() -> None:
    assert count(given_rules(preset="up-to-three", active_max=2), PADDLE) == 240
    assert count(given_rules(preset="programmer", adjacent="any"), PADDLE) == 240 + 120 * 14


def test_closed_form_equals_the_walk() -> None:
    rules = given_rules(
        excluded=("1",), on={"3": "any"}, cathodes_max=2, active_min=3, active_max=5
    )
    constraints = constraints_of(settings_of(rules), PADDLE)
    assert constraints.only_counts
    assert count(rules, PADDLE) == module._walk(constraints, constraints.allowed)


def test_large_spaces_are_counted_by_walk() -> None:
    # No closed form: all subsets with both groups connected on the paddle.
    assert count(given_rules(connected=("cathodes", "anodes")), PADDLE) == 926_096


def test_closed_form_has_no_overflow() -> None:
    large = grid([8.0 * n for n in range(39)])
    assert count(given_rules(), large) == 3**39 - 2 * 2**39 + 1


def test_rows_are_in_ascending_order_of_id() -> None:
    ids = configuration_ids(enumerate_configurations(given_rules(preset="up-to-three"), PADDLE))
    assert (np.diff(ids) > 0).all()


def texts(rules: Rules, contacts: ContactGrid) -> list[str]:
    return [
        format_configuration(r, contacts.names) for r in enumerate_configurations(rules, contacts)
    ]


def test_lists_add_and_take_away() -> None:
    bare = texts(given_rules(active_max=2), PAIRS)
    changed = given_rules(
        active_max=2, include=("0- 1+ 2+", "0- 1+"), exclude=("3- 4+", "0- 1- 2+")
    )
    found = texts(changed, PAIRS)
    assert set(found) == set(bare) - {"3- 4+"} | {"0- 1+ 2+"}
    assert count(changed, PAIRS) == len(found) == len(bare)
    assert found == sorted(found, key=lambda t: configuration_ids([_row(t, PAIRS)])[0])


def _row(text: str, contacts: ContactGrid) -> NDArray[np.int8]:
    from fieldcorr.configurations.text import parse_configuration

    return parse_configuration(text, contacts.names)


def test_an_included_configuration_may_come_last() -> None:
    assert texts(given_rules(on={"5": "+"}, active_max=2, include=("0+ 5-",)), PAIRS)[-1] == "0+ 5-"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"extent_max_mm": 1.0}, "extent_max_mm = 1.0 removed the last 3600"),
        ({"cathodes_min": 3, "preset": "up-to-three"}, "active_max = 3 removed the last"),
        ({"excluded": tuple(map(str, range(15)))}, 'excluded = ["0", "1", '),
        ({"on": {"0": "+", "1": "+", "2": "+"}}, "active_max = 3 removed the last"),
        ({"guarded": "cathodes", "cathodes_min": 2}, 'guarded = "cathodes" removed the last 1680'),
        ({"symmetric": True, "active_max": 2, "on": {"0": "-", "5": "+"}}, "symmetric = true"),
        ({"connected": ("cathodes",), "on": {"0": "-", "15": "-"}}, 'connected = ["cathodes"]'),
    ],
)
def test_the_rule_that_removed_the_last_is_named(change: dict[str, Any], said: str) -> None:
    rules = given_rules(**{"preset": "up-to-three", **change})
    with pytest.raises(ConfigurationError) as caught:
        enumerate_configurations(rules, PADDLE)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_may_remove_the_last_too() -> None:
    rules = given_rules(on={"0": "-", "1": "+"}, active_max=2, exclude=("0- 1+",))
    with pytest.raises(ConfigurationError, match="exclude removed the last 1"):
        count(rules, PAIRS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"excluded": ("77",)}, "excluded: '77' is not a contact"),
        ({"on": {"77": "-"}}, "on: '77' is not a contact"),
        ({"cathodes_min": 0}, "cathodes_min = 0"),
        ({"anodes_min": 0}, "anodes_min = 0"),
        ({"include": ("0- 1-",)}, "include: '0- 1-' needs an anode"),
        ({"exclude": ("0- 99+",)}, "unknown contact '99'"),
        ({"include": ("0- 1+",), "exclude": ("1+ 0-",)}, "include and exclude"),
    ],
)
def test_wrong_rules_say_what_is_wrong(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        count(given_rules(**change), PAIRS)
    assert said in str(caught.value)


def test_an_array_without_mirror_image_cannot_be_symmetric() -> None:
    with pytest.raises(ConfigurationError, match="'0' has no mirror image"):
        count(given_rules(symmetric=True), DIAMOND)


def test_a_walk_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 10_000)
    with pytest.raises(ConfigurationError, match="too many configurations of 16 contacts"):
        count(given_rules(extent_max_mm=40.0), PADDLE)


def test_sets_too_large_for_a_table_hang_together_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    from fieldcorr.configurations import constraints

    rules = given_rules(connected=("cathodes", "anodes"), active_max=4)
    with_table = enumerate_configurations(rules, PADDLE)
    monkeypatch.setattr(constraints, "_TABLE_CONTACTS", 4)
    np.testing.assert_array_equal(enumerate_configurations(rules, PADDLE), with_table)


def test_positions_must_match_names() -> None:
    with pytest.raises(ConfigurationError, match="shape"):
        ContactGrid(("0", "1"), np.zeros((3, 3)))
    with pytest.raises(ConfigurationError, match="finite"):
        ContactGrid(("0", "1"), np.full((2, 3), np.nan))
    with pytest.raises(ConfigurationError, match="1 contacts"):
        count(given_rules(), ContactGrid(("0",), np.zeros((1, 3))))
