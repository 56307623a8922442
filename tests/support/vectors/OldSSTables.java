import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

import org.apache.cassandra.io.sstable.CQLSSTableWriter;

/**
 * Writes SSTables by the CQLSSTableWriter of whatever Cassandra is in the class path: tables `lz4`, `plain`, `deflate` and
 * `snappy` of the keyspace `ks` under the folder of the first argument.
 */
public final class OldSSTables
{
    private static final String COLUMNS = "(id int, c int, s text static, v text, n bigint, m map<text, int>, l frozen<list<int>>, "
                                          + "t frozen<tuple<int, text>>, PRIMARY KEY (id, c))";
    private static final String INSERT = "(id, c, s, v, n, m, l, t) VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ";

    public static void main(String[] arguments) throws Exception
    {
        File root = new File(arguments[0]);
        write(root, "lz4", "{'sstable_compression': 'LZ4Compressor', 'chunk_length_kb': '4'}");
        write(root, "plain", "{'sstable_compression': ''}");
        write(root, "deflate", "{'sstable_compression': 'DeflateCompressor'}");
        write(root, "snappy", "{'sstable_compression': 'SnappyCompressor'}");
        System.exit(0);
    }

    private static void write(File root, String name, String compression) throws Exception
    {
        File folder = new File(root, "ks/" + name);
        folder.mkdirs();
        String table = "CREATE TABLE ks." + name + " " + COLUMNS + " WITH CLUSTERING ORDER BY (c DESC) AND compression = " + compression;
        for (String statement : new String[] { INSERT + "1500000000000000", INSERT + "1500000000000001 AND TTL 1000", null })
        {
            String cql = statement == null
                         ? "UPDATE ks." + name + " USING TIMESTAMP 1500000000000002 SET v = ? WHERE id = ? AND c = ?"
                         : "INSERT INTO ks." + name + " " + statement;
            CQLSSTableWriter writer = CQLSSTableWriter.builder().inDirectory(folder).forTable(table).using(cql).build();
            for (int i = 0; i < 60; i++)
            {
                if (statement == null)
                    writer.rawAddRow(i % 3 == 0 ? null : text("u" + i), number(i / 5), number(i % 5));
                else
                    writer.rawAddRow(number(i / 10), number(i % 10), text("s" + i), i % 7 == 0 ? null : text("v" + i), wide(i),
                                     counted(2, sized(text("a"), number(i), text("k" + i), number(i + 1))),
                                     counted(3, sized(number(1), number(i), number(3))),
                                     i % 5 == 0 ? null : sized(number(i), text("p" + i)));
            }
            writer.close();
        }
    }

    private static ByteBuffer number(int value)
    {
        return (ByteBuffer) ByteBuffer.allocate(4).putInt(0, value);
    }

    private static ByteBuffer wide(long value)
    {
        return (ByteBuffer) ByteBuffer.allocate(8).putLong(0, value);
    }

    private static ByteBuffer text(String value)
    {
        return ByteBuffer.wrap(value.getBytes(StandardCharsets.UTF_8));
    }

    private static ByteBuffer sized(ByteBuffer... values)
    {
        ByteBuffer all = ByteBuffer.allocate(1024);
        for (ByteBuffer value : values)
        {
            all.putInt(value.remaining());
            all.put(value.duplicate());
        }
        all.flip();
        return all;
    }

    private static ByteBuffer counted(int count, ByteBuffer values)
    {
        ByteBuffer all = ByteBuffer.allocate(1024);
        all.putInt(count);
        all.put(values);
        all.flip();
        return all;
    }
}
