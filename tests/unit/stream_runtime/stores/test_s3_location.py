"""The locations of S3: what is not understood, and what would have no effect, is refused."""

from __future__ import annotations

import pytest

from archive.faults import ARCHIVE_FAULTS
from cdc_common.errors.codes import CdcError, Code
from stream_runtime.stores.s3 import S3Location


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("s3://b/a/lake/", S3Location("b", "a/lake")),
        ("s3://b?region=eu-west-1&path_style=true", S3Location("b", "", "eu-west-1", None, path_style=True)),
        ("s3://b/l?endpoint_override=minio:9000", S3Location("b", "l", None, "https://minio:9000", path_style=True)),
        (
            "s3://b/l?scheme=http&endpoint_override=minio&path_style=false",
            S3Location("b", "l", None, "http://minio", path_style=False),
        ),
    ],
)
def test_a_location(location: str, wanted: S3Location) -> None:
    assert S3Location.parse(location, ARCHIVE_FAULTS) == wanted


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("s3:///lake", "no bucket"),
        ("s3://bucket/lake?acl=public", "unknown option acl"),
        ("s3://bucket/lake?path_style=yes", "path_style is not true or false"),
        ("s3://bucket/lake?path_style=", "path_style is not true or false"),
        ("s3://bucket/lake?scheme=ftp&endpoint_override=minio", "scheme is not http or https"),
        ("s3://bucket/lake?endpoint_override=http://minio:9000", "endpoint_override is not HOST:PORT"),
        ("s3://bucket/lake?scheme=http", "scheme has no effect without endpoint_override"),
    ],
)
def test_a_location_that_is_refused(location: str, words: str) -> None:
    with pytest.raises(CdcError, match=words) as raised:
        S3Location.parse(location, ARCHIVE_FAULTS)
    assert raised.value.code is Code.ARCHIVE_LOCATION
