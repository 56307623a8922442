"""The fields of records that dev.tools.fields finds without a comment."""

from __future__ import annotations

import pytest

from dev.tools.fields import FieldCheck, main

CHECK = FieldCheck(("one/",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class A(NamedTuple):\n    x: int\n    y: int = 0\n", ["A.x", "A.y"]),
        ("class A(NamedTuple):\n    # In seconds.\n    x: int\n    y: int  # in ms\n", []),
        ("class A(NamedTuple):\n    # In seconds.\n    x: int\n    y: int\n", ["A.y"]),
        ("class A(NamedTuple):\n    # Two lines\n    # of a comment.\n    x: tuple[\n        int\n    ] = ()\n", []),
        ("class A(NamedTuple):\n    x: str = 'ö#'\n", ["A.x"]),
        ("@dataclass\nclass A:\n    x: int\n", ["A.x"]),
        ("@dataclasses.dataclass(frozen=True)\nclass A:\n    x: int\n", ["A.x"]),
        ("class A(typing.TypedDict, total=False):\n    x: int\n", ["A.x"]),
        ("class A(BaseModel):\n    x: int = Field(1, description='It is.')\n    y: int = Field(1)\n", ["A.y"]),
        ("class A(BaseModel):\n    x: Annotated[int, Field(description='It is.')]\n", []),
        ("class A(NamedTuple, Generic[T]):\n    x: T\n", ["A.x"]),
        ("@dataclass\nclass A:\n    x: ClassVar[int] = 1\n    y: ClassVar = 2\n    _z: int = 3\n", []),
        ("class _A(NamedTuple):\n    x: int\n", []),
        ("class A(BaseModel):\n    pass\n\n\nclass B(A):\n    x: int\n", ["B.x"]),
        ("class _A(NamedTuple):\n    x: int\n\n\nclass B(_A):\n    y: int\n", ["B.y"]),
        ("class A:\n    x: int\n\n\nclass B(A):\n    y: int\n", []),
        ("class A:\n    x: int\n", []),
        ("@dataclass\nclass A:\n    @dataclass\n    class B:\n        x: int\n\n    y: int\n", ["B.x", "A.y"]),
    ],
)
def test_what_is_found(text: str, expected: list[str]) -> None:
    assert [finding.words for finding in CHECK.findings("one/a.py", text)] == expected


def test_only_python_in_the_folders_is_checked() -> None:
    assert CHECK.checks("one/two/a.py")
    assert not CHECK.checks("one/a.pyx")
    assert not CHECK.checks("two/a.py")


def test_the_project_has_none() -> None:
    assert main([]) == 0
