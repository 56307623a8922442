"""Reads the folder `cdc_raw` and the keys of an encrypted log; reports their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.files.segments import list_segments, read_descriptor_of
from cassandra_storage.formats.errors import FormatError, UnsupportedError
from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra_storage.files.segments import SegmentFile
    from cassandra_storage.formats.commitlog.descriptor import CdcIndex
    from cassandra_storage.formats.commitlog.sections import Codecs, Decompressor, Decryptor, EncryptionParameters
    from publisher.settings import PublisherSettings


def list_cdc_segments(folder: Path, setting: str = "node.cdc_raw_directory") -> list[SegmentFile]:
    """The segments in the folder that the setting names, oldest first."""
    try:
        return list_segments(folder)
    except OSError as error:
        of_node = f"the node's {setting.removeprefix('node.')} (cassandra.yaml)"
        raise CdcError(
            Code.CDC_RAW_MISSING,
            f"The directory {folder} cannot be read: {error.strerror}.",
            f"Set {setting} to {of_node}, and let the publisher's user read and delete there.",
        ) from error


def refused_error(path: Path, error: OSError) -> CdcError:
    """The system does not let the publisher read a file."""
    return CdcError(
        Code.CDC_RAW_MISSING,
        f"The file {path} cannot be read: {error.strerror}.",
        "Put the publisher's user into Cassandra's group, and let the group read the files and delete in the folder.",
    )


def read_index(file: SegmentFile) -> CdcIndex | None:
    """The durable part of the segment; None if there is nothing to read yet."""
    try:
        return file.read_index()
    except UnsupportedError as error:
        raise unreadable_error(file.path, error) from error
    except FormatError as error:
        raise CdcError(
            Code.SEGMENT_CORRUPT,
            f"{file.index_path} is {error.reason}.",
            "Only Cassandra may write there: restore the file. Or keep it and its segment elsewhere, and repair the"
            " tables with cdc = true on this node.",
        ) from error
    except OSError as error:
        raise refused_error(file.index_path, error) from error


def unreadable_error(path: Path, error: FormatError) -> CdcError:
    """The segment has an unsupported format, or its descriptor is damaged."""
    if not isinstance(error, UnsupportedError):
        return damage_error(path, error.reason, f"position {error.position or 0}")
    return CdcError(
        Code.SEGMENT_UNSUPPORTED,
        f"The segment {path} cannot be read: {error.reason}.",
        "Install a build that supports it, or set publisher.keystore if the key is missing.",
    )


def damage_error(path: Path, reason: str, where: str) -> CdcError:
    return CdcError(
        Code.SEGMENT_CORRUPT,
        f"The segment {path} is damaged at {where}: {reason}.",
        "Keep a copy of the segment, move it away, and repair the tables with cdc = true on this node.",
    )


class LazyCodecs:
    """SegmentCodecs for a log that is not encrypted. It takes 12 MB, so the first compressed segment imports it."""

    def decompressor(self, class_name: str) -> Decompressor:
        from cassandra_storage.files.codecs import SegmentCodecs  # noqa: PLC0415 - see above

        return SegmentCodecs().decompressor(class_name)

    def decryptor(self, parameters: EncryptionParameters) -> Decryptor:
        from cassandra_storage.files.codecs import SegmentCodecs  # noqa: PLC0415 - see above

        return SegmentCodecs().decryptor(parameters)


def open_codecs(settings: PublisherSettings, folder: Path) -> Codecs:
    """Codecs for all segments of the folder. The keystore is read only if the settings allow plaintext downstream."""
    if settings.keystore is None or not settings.allow_plaintext_downstream:
        _check_not_encrypted(folder, has_keystore=settings.keystore is not None)
        return LazyCodecs()
    from cassandra_storage.files.codecs import SegmentCodecs  # noqa: PLC0415 - see LazyCodecs
    from cassandra_storage.files.keystore import KeystoreError, read_keys  # noqa: PLC0415 - as above

    password = settings.keystore_password.get_secret_value()
    try:
        return SegmentCodecs(read_keys(settings.keystore, password, settings.key_password.get_secret_value() or None))
    except (KeystoreError, OSError) as error:
        raise CdcError(
            Code.KEYSTORE,
            f"The keystore {settings.keystore} cannot be read: {error}.",
            "Set publisher.keystore, keystore_password and key_password as key_provider in"
            " transparent_data_encryption_options (cassandra.yaml), and let the publisher's user read the file.",
        ) from error


def _check_not_encrypted(folder: Path, *, has_keystore: bool) -> None:
    """An encrypted log leaves the node only if both the keystore and allow_plaintext_downstream are set."""
    encrypted = next((file for file in list_cdc_segments(folder) if _is_encrypted(file)), None)
    if encrypted is not None or has_keystore:
        raise CdcError(
            Code.LOG_ENCRYPTED,
            f"The node's commit log is encrypted ({encrypted.path})."
            if encrypted is not None
            else "publisher.keystore is set for an encrypted commit log, but allow_plaintext_downstream is not.",
            "Its contents would leave the node unencrypted. If Kafka and its consumers may hold them, set"
            " publisher.allow_plaintext_downstream = true and publisher.keystore.",
        )


def _is_encrypted(file: SegmentFile) -> bool:
    try:
        descriptor = read_descriptor_of(file.path)
    except (FormatError, FileNotFoundError):
        return False  # reported when it is read
    except OSError as error:
        raise refused_error(file.path, error) from error
    return descriptor is not None and descriptor.encryption is not None
