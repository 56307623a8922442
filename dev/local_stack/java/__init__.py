"""A Java runtime, jars from Maven Central, and small compiled classes."""
