import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntBinaryOperator;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringComparator;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.db.marshal.CollectionType;
import org.apache.cassandra.db.marshal.ReversedType;
import org.apache.cassandra.db.marshal.UserType;
import org.apache.cassandra.schema.CQLTypeParser;
import org.apache.cassandra.schema.Types;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * The comparators of Cassandra 3.11 to 5.0 as judges of orders. A request is a line of words between tabs, its answer a
 * line: for each value a word of one sign for each other value, '?' where Cassandra refuses to compare. Values are
 * hex, "-" for null, between commas.
 *
 * <pre>
 * user_type TAB name TAB field TAB type ...      no answer
 * values TAB type TAB values
 * paths TAB type TAB values                      cell paths of a multi-cell column of this type
 * clusterings TAB KIND values between spaces TAB ASC or DESC type ...
 * </pre>
 */
public final class TypeOrders
{
    private static final String KEYSPACE = "ks";
    private static final Types.RawBuilder userTypes = Types.rawBuilder(KEYSPACE);

    public static void main(String[] arguments) throws Exception
    {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "US-ASCII");
        System.setOut(System.err);
        DatabaseDescriptor.clientInitialization(true);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine())
        {
            String[] words = line.split("\t", -1);
            if (words[0].equals("user_type"))
            {
                addUserType(words);
                continue;
            }
            try
            {
                answers.println(answer(words));
            }
            catch (Throwable error)
            {
                answers.println("error " + error);
            }
            answers.flush();
        }
        System.exit(0);
    }

    private static void addUserType(String[] words)
    {
        List<String> names = new ArrayList<>();
        List<String> types = new ArrayList<>();
        for (int i = 2; i < words.length; i += 2)
        {
            names.add(words[i]);
            types.add(words[i + 1]);
        }
        userTypes.add(words[1], names, types);
    }

    private static String answer(String[] words) throws Exception
    {
        if (words[0].equals("clusterings"))
            return clusterings(words);
        AbstractType<?> type = type(words[1]);
        AbstractType<?> comparator = words[0].equals("paths") ? pathComparator(type) : type;
        ByteBuffer[] values = values(words[2]);
        return order(values.length, (i, j) -> comparator.compare(values[i], values[j]));
    }

    /** As in ColumnMetadata.makeCellPathComparator. */
    private static AbstractType<?> pathComparator(AbstractType<?> type)
    {
        return type.isCollection() ? ((CollectionType<?>) type).nameComparator() : ((UserType) type).nameComparator();
    }

    private static String clusterings(String[] words) throws Exception
    {
        List<AbstractType<?>> types = new ArrayList<>();
        for (String column : Arrays.asList(words).subList(2, words.length))
        {
            AbstractType<?> type = type(column.substring(column.indexOf(' ') + 1));
            types.add(column.startsWith("DESC") ? ReversedType.getInstance(type) : type);
        }
        ClusteringComparator comparator = new ClusteringComparator(types);
        String[] texts = words[1].split(" ");
        ClusteringPrefix[] prefixes = new ClusteringPrefix[texts.length];
        for (int i = 0; i < texts.length; i++)
            prefixes[i] = prefix(texts[i]);
        return order(prefixes.length, (i, j) -> comparator.compare(prefixes[i], prefixes[j]));
    }

    private static ClusteringPrefix prefix(String text) throws Exception
    {
        int colon = text.indexOf(':');
        ClusteringPrefix.Kind kind = ClusteringPrefix.Kind.valueOf(text.substring(0, colon));
        ByteBuffer[] values = text.endsWith(":none") ? new ByteBuffer[0] : values(text.substring(colon + 1));
        return kind == ClusteringPrefix.Kind.CLUSTERING ? Clustering.make(values) : bound(kind, values);
    }

    /** ClusteringBound.create until 3.11, BufferClusteringBound.create from 4.0 on. */
    private static ClusteringPrefix bound(ClusteringPrefix.Kind kind, ByteBuffer[] values) throws Exception
    {
        Class<?> bounds;
        try
        {
            bounds = Class.forName("org.apache.cassandra.db.BufferClusteringBound");
        }
        catch (ClassNotFoundException error)
        {
            bounds = Class.forName("org.apache.cassandra.db.ClusteringBound");
        }
        Method create = bounds.getMethod("create", ClusteringPrefix.Kind.class, ByteBuffer[].class);
        return (ClusteringPrefix) create.invoke(null, kind, values);
    }

    private static AbstractType<?> type(String text)
    {
        return CQLTypeParser.parse(KEYSPACE, text, userTypes.build());
    }

    private static ByteBuffer[] values(String text)
    {
        String[] words = text.split(",", -1);
        ByteBuffer[] values = new ByteBuffer[words.length];
        for (int i = 0; i < words.length; i++)
            values[i] = words[i].equals("-") ? null : ByteBufferUtil.hexToBytes(words[i]);
        return values;
    }

    private static String order(int size, IntBinaryOperator compare)
    {
        StringBuilder rows = new StringBuilder();
        for (int i = 0; i < size; i++)
        {
            for (int j = 0; j < size; j++)
                rows.append(sign(compare, i, j));
            rows.append(' ');
        }
        return rows.toString();
    }

    private static char sign(IntBinaryOperator compare, int i, int j)
    {
        try
        {
            int order = compare.applyAsInt(i, j);
            return order < 0 ? '<' : order > 0 ? '>' : '=';
        }
        catch (Throwable error)
        {
            return '?';
        }
    }
}
