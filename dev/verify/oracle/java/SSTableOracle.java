import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.core.io.JsonStringEncoder;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.db.transform.Transformation;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.metadata.StatsMetadata;

/**
 * Cassandra's own reader of SSTables as a judge. One command a line on stdin, JSON lines on stdout; the schema is that
 * of the (stopped) node whose cassandra.yaml -Dcassandra.config names.
 *
 * <pre>
 * sstable TAB path of Data.db   {"stats": [...]}, then for each partition one line of it, one line for each of its rows
 *                               and markers, and last {"end": true}, or {"error": text} where the reader gives up
 * merge TAB now TAB gcBefore TAB oldestUnrepaired TAB paths...
 *                               the same lines, without "stats", of all those SSTables compacted: merged, and purged as
 *                               CompactionIterator does; oldestUnrepaired -1: not only repaired tombstones are purged
 * </pre>
 */
public final class SSTableOracle
{
    private static PrintStream out;

    public static void main(String[] arguments) throws Exception
    {
        out = new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16), false, "US-ASCII");
        System.setOut(System.err);
        DatabaseDescriptor.toolInitialization();
        Api.loadSchema();
        say("{\"ready\":true}");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine())
        {
            try
            {
                String[] words = line.split("\t");
                if (words[0].equals("merge"))
                    merge(words);
                else
                    read(words[1]);
                say("{\"end\":true}");
            }
            catch (Throwable error)
            {
                error.printStackTrace();
                say("{\"error\":" + quoted(error.toString()) + "}");
            }
        }
        System.exit(0);
    }

    private static void say(String line)
    {
        out.print(line);
        out.print('\n');
        out.flush();
    }

    private static String quoted(String text)
    {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : new String(JsonStringEncoder.getInstance().quoteAsString(text)).toCharArray())
            quoted.append(c < 0x7f ? String.valueOf(c) : "?");
        return quoted.append("\"").toString();
    }

    private static void read(String path) throws Exception
    {
        SSTableReader sstable = open(path);
        try
        {
            stats(sstable.getSSTableMetadata());
            try (ISSTableScanner scanner = sstable.getScanner())
            {
                tell(scanner);
            }
        }
        finally
        {
            sstable.selfRef().release();
        }
    }

    private static void merge(String[] words) throws Exception
    {
        long now = Long.parseLong(words[1]);
        long unrepaired = Long.parseLong(words[3]);
        List<SSTableReader> sstables = new ArrayList<>();
        List<ISSTableScanner> scanners = new ArrayList<>();
        try
        {
            for (int i = 4; i < words.length; i++)
            {
                sstables.add(open(words[i]));
                scanners.add(sstables.get(i - 4).getScanner());
            }
            Api.Purger purger = new Api.Purger(now, Long.parseLong(words[2]), unrepaired, unrepaired >= 0);
            try (UnfilteredPartitionIterator merged = Transformation.apply(Api.merge(scanners, now), purger))
            {
                tell(merged);
            }
        }
        finally
        {
            for (ISSTableScanner scanner : scanners)
                scanner.close();
            for (SSTableReader sstable : sstables)
                sstable.selfRef().release();
        }
    }

    private static void tell(UnfilteredPartitionIterator partitions)
    {
        while (partitions.hasNext())
        {
            try (UnfilteredRowIterator partition = partitions.next())
            {
                out.print(new Description().partition(partition).add("\n"));
                while (partition.hasNext())
                    out.print(new Description().unfiltered(partition.next()).add("\n"));
            }
        }
    }

    private static void stats(StatsMetadata stats)
    {
        out.print("{\"stats\":[" + stats.minTimestamp + "," + stats.maxTimestamp + "," + stats.minTTL + "," + stats.maxTTL);
        out.print("," + stats.sstableLevel + "," + stats.repairedAt + "," + stats.totalColumnsSet + "," + stats.totalRows);
        out.print("," + stats.estimatedPartitionSize.count() + "]}\n");
    }

    /** SSTableReader.openNoValidation takes CFMetaData in 3.11, its reference from 4.0 on, and an owner from 5.0 on. */
    private static SSTableReader open(String path) throws Exception
    {
        Descriptor descriptor = descriptor(path);
        Object metadata = metadata(descriptor);
        for (Method method : SSTableReader.class.getMethods())
        {
            Class<?>[] types = method.getParameterTypes();
            if (!method.getName().equals("openNoValidation") || !types[types.length - 1].isInstance(metadata))
                continue;
            if (types.length == 2 && types[0] == Descriptor.class)
                return (SSTableReader) method.invoke(null, descriptor, metadata);
            if (types.length == 3 && types[1] == Descriptor.class)
                return (SSTableReader) method.invoke(null, null, descriptor, metadata);
        }
        throw new AssertionError("SSTableReader.openNoValidation");
    }

    private static Object metadata(Descriptor descriptor) throws Exception
    {
        Class<?> schema = Class.forName(Api.HAS_CF_METADATA ? "org.apache.cassandra.config.Schema" : "org.apache.cassandra.schema.Schema");
        String name = Api.HAS_CF_METADATA ? "getCFMetaData" : "getTableMetadataRef";
        Method method = schema.getMethod(name, String.class, String.class);
        Object found = method.invoke(schema.getField("instance").get(null), descriptor.ksname, descriptor.cfname);
        if (found == null)
            throw new IllegalArgumentException("unknown table " + descriptor.ksname + "." + descriptor.cfname);
        return found;
    }

    /** fromFilename takes Java's File until 4.0; 4.1 has a File of its own, 5.0 calls it fromFile. */
    private static Descriptor descriptor(String path) throws Exception
    {
        for (Method method : Descriptor.class.getMethods())
        {
            Class<?>[] types = method.getParameterTypes();
            boolean isNamed = method.getName().equals("fromFilename") || method.getName().equals("fromFile");
            if (isNamed && Modifier.isStatic(method.getModifiers()) && types.length == 1 && types[0] != String.class
                && method.getReturnType() == Descriptor.class)
                return (Descriptor) method.invoke(null, types[0].getConstructor(String.class).newInstance(path));
        }
        return Descriptor.class.cast(Descriptor.class.getMethod("fromFilename", String.class).invoke(null, path));
    }
}
