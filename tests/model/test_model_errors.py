"""Every way a model file can be wrong gives one line that names file, key and value."""

from pathlib import Path

import pytest

from fieldcorr.errors import ModelError
from fieldcorr.model import bundled_devices, bundled_models, load_model

MODEL = bundled_models()["lumbosacral-565"].read_text(encoding="utf-8")
DEVICE = bundled_devices()["paddle-565"].read_text(encoding="utf-8")


def changed(text: str, old: str, new: str) -> str:
    """Replace the first ``old``, which must be there."""
    assert old in text
    return text.replace(old, new, 1)


def message_of(path: Path) -> str:
    """Load a bad model and return its message, which must be one line that begins with the file."""
    with pytest.raises(ModelError) as caught:
        load_model(path)
    message = str(caught.value)
    assert message.isprintable(), "not one line"
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


BAD_VALUES = [
    # broken TOML: line and column
    ("radius_mm = 150.0", "radius_mm = ", ":13:13: not valid TOML: "),
    ("[geometry.torso]", "[geometry.torso", ":12:16: not valid TOML: "),
    ("[solver]", "[solver]\norder = 1", "not valid TOML: "),
    ("radius_mm = 150.0", "radius_mm = 1" + 5000 * "0", ": not valid TOML: a number is too long"),
    # unknown keys
    (
        "radius_mm = 150.0",
        "radius_m = 150.0",
        ': geometry.torso.radius_m: unknown key; did you mean "radius_mm"?',
    ),
    (
        "conductivity_S_per_m = 1.7",
        "conductivity_S_per_mm = 1.7",
        ': tissues.csf.conductivity_S_per_mm: unknown key; did you mean "conductivity_S_per_m"?',
    ),
    ("[geometry.grey]", "[geometry.gray]", ': geometry.gray: unknown key; did you mean "grey"?'),
    ("format = 1", 'format = 1\ntext = "x"', ": text: unknown key"),
    ("[solver]", '[solver]\n"a\\nb" = 1', r": solver.a\nb: unknown key"),
    # wrong types and values
    ("radius_mm = 150.0", 'radius_mm = "150"', ': geometry.torso.radius_mm = "150": must be a num'),
    ("radius_mm = 150.0", "radius_mm = true", ": geometry.torso.radius_mm = true: must be a num"),
    ("radius_mm = 150.0", "radius_mm = nan", ": geometry.torso.radius_mm = nan: must be a finite"),
    ("radius_mm = 150.0", "radius_mm = inf", ": geometry.torso.radius_mm = inf: must be a finite"),
    ("radius_mm = 150.0", "radius_mm = -1", ": geometry.torso.radius_mm = -1: must be greater th"),
    ("radius_mm = 150.0", "radius_mm = 1" + 400 * "0", ": geometry.torso.radius_mm = 1000"),
    ("radius_mm = 150.0", "radius_mm = 1979-05-27", ": geometry.torso.radius_mm = datetime.date"),
    ("radius_mm = 150.0", "radius_mm = 150000", ": geometry.torso.radius_mm = 150000: must be"),
    ("radius_mm = 150.0", "", ": geometry.torso.radius_mm: missing"),
    ("[drive]\nmode", "[[drive]]\nmode", ": drive = [{'mode': 'voltage'}]: must be a table"),
    ("format = 1", "format = 2", ": format = 2: must be 1"),
    ('name = "lumbosacral-565"', 'name = ""', ': name = "": must not be empty'),
    ('name = "lumbosacral-565"', 'name = "../x"', ': name = "../x": must be a name of letters'),
    ('mode = "voltage"', 'mode = "curent"', ": drive.mode = \"curent\": must be 'voltage' or"),
    ("order = 2", "order = 3", ": solver.order = 3: must be 1 or 2"),
    ("order = 2", "order = true", ": solver.order: must be a whole number, not true"),
    ("tolerance = 1e-8", "tolerance = 0", ": solver.tolerance = 0: must be greater"),
    # tissues
    (
        "conductivity_S_per_m = 1.7",
        "conductivity_S_per_m = -1.7",
        ": tissues.csf.conductivity_S_per_m = -1.7: must be greater than 0",
    ),
    (
        "conductivity_S_per_m = 1.7",
        "conductivity_S_per_m = 1.7\nconductivity_along_S_per_m = 1.0",
        ": tissues.csf.conductivity_S_per_m = 1.7 excludes conductivity_along_S_per_m",
    ),
    (
        "conductivity_S_per_m = 1.7",
        "conductivity_along_S_per_m = 1.7",
        ": tissues.csf: conductivity is missing",
    ),
    ("[tissues.grey]", "[tissues.gray]", ": tissues.grey: missing; is tissues.gray meant"),
    ("[tissues.bone]", "[tissues.steel]", ": tissues.bone: missing"),
    ('source = "Holsheimer; published', 'nominal_source = "', "unknown key"),
    # region
    (
        'tissues = ["grey", "white"]',
        'tissues = ["gray"]',
        ': region.tissues: "gray" is not a tissue of the model; did you mean "grey"?',
    ),
    ('tissues = ["grey", "white"]', "tissues = []", ": region.tissues = []: "),
    (
        'tissues = ["grey", "white"]',
        'tissues = "grey"',
        ': region.tissues = "grey": must be a list',
    ),
    (
        'tissues = ["grey", "white"]',
        'tissues = ["grey", "grey"]',
        ": region.tissues names a tissue",
    ),
    ("taper_mm = 10.0", "taper_mm = 31.0", ": region.taper_mm = 31 is longer than"),
    ("taper_mm = 10.0", "box_mm = [[0, 1], [2, 1], [0, 1]]", ": region.box_mm: y runs from 2 to 1"),
    ("taper_mm = 10.0", "box_mm = [[0, 1], [0, 1]]", ": region.box_mm[2]: missing"),
    (
        "window_half_length_mm = 30.0",
        "window_half_length_mm = 201.0",
        ": region.window_half_length_mm = 201: the window",
    ),
    # geometry that cannot be
    ("width_mm = 9.4", "width_mm = 17.0", ": geometry: the cord (17 x 7.5 mm"),
    ("dorsal_csf_mm = 3.0", "dorsal_csf_mm = 6.0", ": geometry: the cord ("),
    ("width_mm = 16.0", "width_mm = 23.0", ": geometry: the dura (23.6 x 13.1 mm"),
    ("depth_mm = 19.6", "depth_mm = 60.0", ": geometry: the canal ("),
    ("radius_mm = 150.0", "radius_mm = 30.0", ": geometry: the vertebra ("),
    ("column_offset_mm = 1.9", "column_offset_mm = 3.5", ": geometry: the grey-left ("),
    ("column_offset_mm = 1.9", "column_offset_mm = 1.3", ": geometry: the grey columns overlap"),
    # array that does not fit
    ("gap_to_dura_mm = 0.3", "gap_to_dura_mm = -0.3", ": array.gap_to_dura_mm = -0.3: must be"),
    (
        "gap_to_dura_mm = 0.3",
        "gap_to_dura_mm = 1.5",
        ": array: the paddle hits bone: its corner at",
    ),
    ("yaw_degree = 0.0", "yaw_degree = 6.0", ": array: the paddle hits bone: its corner at"),
    ("pitch_degree = 0.0", "pitch_degree = -3.0", ": array: the paddle hits bone: its corner at"),
    ("yaw_degree = 0.0", "yaw_degree = 90.0", ": array.yaw_degree = 90.0: must be less"),
    (
        "offset_left_mm = 0.0\noffset_rostral_mm",
        "offset_left_mm = 30.0\noffset_rostral_mm",
        ": array.offset_left_mm = 30: the paddle lies beside the dural sac",
    ),
    (
        "offset_rostral_mm = 0.0",
        "offset_rostral_mm = 180.0",
        ": array.offset_rostral_mm = 180: the paddle reaches out of",
    ),
    ("height_mm = 50.0", "height_mm = 300.0", ": boundary.case: a patch of height_mm = 300"),
    ("width_mm = 60.0", "width_mm = 600.0", ": boundary.case.width_mm = 600 is more than half"),
    # contacts, drive, rules
    ('model = "equipotential"', 'model = "impedance"', ': contacts.model = "impedance" needs'),
    ("impedance_ohm_m2 = 0.0", "impedance_ohm_m2 = 1.0", ": contacts.impedance_ohm_m2 = 1 has no"),
    (
        'mode = "voltage"',
        'mode = "current"\nfractions = { "99" = 0.5 }',
        ': drive.fractions: "99" is not a contact; contacts are 0, 1, 2',
    ),
    ('mode = "voltage"', 'mode = "voltage"\nfractions = { "9" = 0.5 }', ": drive.fractions need"),
    (
        'mode = "voltage"',
        'mode = "current"\nfractions = { "9" = 0 }',
        ": drive.fractions.9 = 0: must be greater than 0",
    ),
    ('preset = "up-to-three"', 'preset = "three"', ': configurations.preset = "three": must be'),
    (
        'preset = "up-to-three"',
        'excluded = ["16"]',
        ': configurations.excluded: "16" is not a contact',
    ),
    ('preset = "up-to-three"', 'off = ["case"]', ': configurations.off: "case" is not a contact'),
    ('preset = "up-to-three"', 'on = { "x" = "-" }', ': configurations.on: "x" is not a contact'),
    ('preset = "up-to-three"', 'on = { "3" = "*" }', ': configurations.on.3 = "*": must be'),
    (
        'preset = "up-to-three"',
        'on = { "3" = "-" }\noff = ["3"]',
        ': configurations.on: contact "3" is in off as well',
    ),
    (
        'preset = "up-to-three"',
        "active_min = 3\nactive_max = 2",
        ": configurations.active_min = 3 is more than active_max = 2",
    ),
    (
        'preset = "up-to-three"',
        "active_max = 2.5",
        ": configurations.active_max = 2.5: must be a wh",
    ),
    ('preset = "up-to-three"', 'include = ["0- 77+"]', ": configurations.include: "),
    # device
    (
        'device = "paddle-565"',
        'device = "paddle-665"',
        ': array.device = "paddle-665": no such bundled device; did you mean "paddle-565"?',
    ),
    ('device = "paddle-565"', 'device = "x.toml"', ': array.device = "x.toml": '),
]


@pytest.mark.parametrize(("old", "new", "expected"), BAD_VALUES)
def test_bad_value(tmp_path: Path, old: str, new: str, expected: str) -> None:
    path = tmp_path / "model.toml"
    path.write_text(changed(MODEL, old, new), encoding="utf-8")
    assert expected in message_of(path)


BAD_DEVICES = [
    ("length_mm = 64.2", "length_mm = 40.0", 'contacts: contact "5" at left_mm = 0'),
    ("width_mm = 10.0", "width_mm = 5.0", 'contacts: contact "0" at left_mm = 2.5'),
    ('name = "1"', 'name = "0"', 'contacts: the name "0" is given twice'),
    ('name = "1"', 'name = "case"', 'contacts: the name "case" is reserved'),
    ('name = "1"', 'nam = "1"', 'contacts[1].nam: unknown key; did you mean "name"?'),
    ("length_mm = 4.0", "length_mm = 8.5", 'contacts: contacts "0" and "1" overlap'),
    (
        "length_mm = 4.0\nwidth_mm = 1.5",
        "length_mm = 4.5\nwidth_mm = 2.5",
        'contacts: contacts "0" and "5" overlap',
    ),
    ("rostral_mm = 17.0", "rostral_mm = nan", "contacts[0].rostral_mm = nan: must be a finite"),
    ("thickness_mm = 2.0", "thickness_mm = 0", "paddle.thickness_mm = 0: must be greater than 0"),
    ("format = 1", "", "format: missing"),
    ("[contact]", "[contact", "not valid TOML"),
]


@pytest.mark.parametrize(("old", "new", "expected"), BAD_DEVICES)
def test_bad_device(tmp_path: Path, old: str, new: str, expected: str) -> None:
    device = tmp_path / "own.toml"
    device.write_text(changed(DEVICE, old, new), encoding="utf-8")
    model = tmp_path / "model.toml"
    model.write_text(changed(MODEL, '"paddle-565"', '"own.toml"'), encoding="utf-8")
    message = message_of(model)
    assert message.startswith(f': array.device = "own.toml": {device}')
    assert expected in message


BAD_BYTES = [
    (b"", ": format: missing (and 4 more)"),
    (b"format = 1\nname = '\xff'", ":2: not UTF-8 text (byte 0xff)"),
    (b"#" * 1_000_001, ": larger than 1000000 bytes, not a model file"),
    (b"a = " + 100_000 * b"[", ": not valid TOML: "),
    (b'name = "', ":1:9: not valid TOML: "),
    (b"geometry = 3", ": geometry = 3: must be a table"),
    (b"\x00", ":1:1: not valid TOML: "),
]


@pytest.mark.parametrize(("data", "expected"), BAD_BYTES)
def test_bad_file(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "model.toml"
    path.write_bytes(data)
    assert expected in message_of(path)


def test_folder(tmp_path: Path) -> None:
    assert message_of(tmp_path) == ": is a folder, not a model file"


def test_missing_file(tmp_path: Path) -> None:
    assert message_of(tmp_path / "none.toml") == ": no such file"


def test_endless_device_is_not_read() -> None:
    assert message_of(Path("/dev/zero")) == ": is not a regular file"


def test_file_name_too_long(tmp_path: Path) -> None:
    assert ": cannot be read: " in message_of(tmp_path / (500 * "x" + ".toml"))


def test_unknown_name_suggests_a_bundled_model() -> None:
    with pytest.raises(ModelError, match='did you mean "lumbosacral-565"'):
        load_model("lumbosacral-656")


def test_misspelt_key_is_not_counted_twice(tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_text(changed(MODEL, "radius_mm = 150.0", "radius_m = 150.0"), encoding="utf-8")
    assert message_of(path).endswith('did you mean "radius_mm"?')


def test_several_mistakes_are_counted(tmp_path: Path) -> None:
    text = changed(MODEL, "radius_mm = 150.0", "radius_mm = -1.0")
    path = tmp_path / "model.toml"
    path.write_text(changed(text, "order = 2", "order = 7"), encoding="utf-8")
    assert message_of(path).endswith("(and 1 more)")
