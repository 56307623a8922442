import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import com.fasterxml.jackson.core.io.JsonStringEncoder;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.commitlog.CommitLogDescriptor;
import org.apache.cassandra.db.commitlog.CommitLogReadHandler;
import org.apache.cassandra.db.commitlog.CommitLogReader;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * Cassandra's own readers as judges. One command a line on stdin, JSON lines on stdout; the schema is that of the
 * (stopped) node whose cassandra.yaml -Dcassandra.config names.
 *
 * <pre>
 * segment TAB path           one line a mutation, {"corrupt": reason} a complaint (with "updates" where a mutation was
 *                            read, and then called invalid), then {"end": true, "unknown": n}: mutations that it
 *                            passed over because it does not know their table
 * mutation TAB version TAB hex
 *                            one line: the updates of a serialized mutation
 * made TAB version TAB seed TAB count TAB keyspace TAB tables by commas
 *                            one line each: a mutation of MadeUpdates, "hex", and what is read of it, "updates"
 * update TAB version TAB version to write TAB hex
 *                            one line: the PartitionUpdate and, as "again", its bytes serialized again
 * </pre>
 */
public final class CommitLogOracle
{
    private static final int MOST_COMPLAINTS = 10_000;

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
            String[] words = line.split("\t");
            try
            {
                answer(words);
            }
            catch (Throwable error)
            {
                error.printStackTrace();
                say("{\"error\":" + quoted(error.toString()) + "}");
            }
        }
        System.exit(0);
    }

    private static void answer(String[] words) throws Exception
    {
        if (words[0].equals("segment"))
            readSegment(words[1]);
        else if (words[0].equals("mutation"))
            readMutation(Integer.parseInt(words[1]), ByteBufferUtil.hexToBytes(words[2]));
        else if (words[0].equals("made"))
            makeMutations(Integer.parseInt(words[1]), Long.parseLong(words[2]), Integer.parseInt(words[3]), words[4], words[5].split(","));
        else if (words[0].equals("update"))
            readUpdate(Integer.parseInt(words[1]), Integer.parseInt(words[2]), ByteBufferUtil.hexToBytes(words[3]));
        else
            throw new IllegalArgumentException(words[0]);
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

    private static void readSegment(String path) throws Exception
    {
        CommitLogReadHandler handler = new CommitLogReadHandler()
        {
            private int complaints;

            public boolean shouldSkipSegmentOnError(CommitLogReadException error)
            {
                say("{\"corrupt\":" + quoted(error.getMessage()) + "}");
                return false;
            }

            /** 3.11's reader finds the same bad sync marker again and again, unless it is stopped. */
            public void handleUnrecoverableError(CommitLogReadException error) throws IOException
            {
                if (++complaints > MOST_COMPLAINTS)
                    throw new IOException("complains without end");
                say("{\"corrupt\":" + quoted(error.getMessage()) + ",\"updates\":" + refused(error.getMessage(), path) + "}");
            }

            public void handleMutation(Mutation mutation, int size, int position, CommitLogDescriptor descriptor)
            {
                Description said = new Description().add("{\"position\":" + position + ",\"size\":" + size + ",\"updates\":");
                out.print(said.updates(mutation).add("}\n"));
            }
        };
        CommitLogReader reader = new CommitLogReader();
        read(reader, handler, path);
        long unknown = 0;
        for (Object entry : reader.getInvalidMutations())
            unknown += ((Number) ((Map.Entry<?, ?>) entry).getValue()).longValue();
        say("{\"end\":true,\"unknown\":" + unknown + "}");
    }

    /** The updates of a mutation that CommitLogReader refuses after it has read it, which it leaves in a file. */
    private static String refused(String message, String path)
    {
        Matcher saved = Pattern.compile("saved to (\\S+)\\. ").matcher(message);
        if (!saved.find())
            return "null";
        try
        {
            byte[] mutation = Files.readAllBytes(Paths.get(saved.group(1)));
            String name = Paths.get(path).getFileName().toString();
            int version = CommitLogDescriptor.fromFileName(name).getMessagingVersion();
            return new Description().updates(Api.readMutation(new DataInputBuffer(mutation), version)).toString();
        }
        catch (Throwable error)
        {
            error.printStackTrace();
            return "null";
        }
    }

    /** readCommitLogSegment takes Java's File until 4.0, and Cassandra's own from 4.1 on. */
    private static void read(CommitLogReader reader, CommitLogReadHandler handler, String path) throws Exception
    {
        for (Method method : CommitLogReader.class.getMethods())
        {
            Class<?>[] types = method.getParameterTypes();
            if (method.getName().equals("readCommitLogSegment") && types.length == 3 && types[2] == boolean.class)
                method.invoke(reader, handler, types[1].getConstructor(String.class).newInstance(path), true);
        }
    }

    private static void readMutation(int version, ByteBuffer bytes) throws IOException
    {
        try (DataInputBuffer input = new DataInputBuffer(bytes, true))
        {
            say(new Description().updates(Api.readMutation(input, version)).toString());
        }
    }

    private static void makeMutations(int version, long seed, int count, String keyspace, String[] tables) throws IOException
    {
        MadeUpdates updates = new MadeUpdates(seed);
        for (int i = 0; i < count; i++)
        {
            try (DataOutputBuffer output = new DataOutputBuffer())
            {
                Mutation mutation = new Mutation(updates.update(keyspace, tables[i % tables.length]));
                Mutation.serializer.serialize(mutation, output, version);
                try (DataInputBuffer input = new DataInputBuffer(output.buffer(), true))
                {
                    Description said = new Description().add("{\"hex\":\"" + ByteBufferUtil.bytesToHex(output.buffer()) + "\",\"updates\":");
                    out.print(said.updates(Api.readMutation(input, version)).add("}\n"));
                }
            }
        }
        out.flush();
    }

    private static void readUpdate(int version, int writeVersion, ByteBuffer bytes) throws IOException
    {
        try (DataInputBuffer input = new DataInputBuffer(bytes, true); DataOutputBuffer output = new DataOutputBuffer())
        {
            PartitionUpdate update = Api.readUpdate(input, version);
            PartitionUpdate.serializer.serialize(update, output, writeVersion);
            say(new Description().add("{\"update\":").update(update).add(",\"left\":" + input.available())
                                 .add(",\"again\":\"" + ByteBufferUtil.bytesToHex(output.asNewBuffer()) + "\"}")
                                 .toString());
        }
    }
}
