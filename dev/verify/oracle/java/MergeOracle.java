import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.FieldIdentifier;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.marshal.*;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.BufferCell;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.CellPath;
import org.apache.cassandra.db.rows.ColumnData;
import org.apache.cassandra.db.rows.ComplexColumnData;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.Hex;
import org.apache.cassandra.utils.btree.BTree;
import org.apache.cassandra.utils.btree.UpdateFunction;

/**
 * Cassandra's own merging of rows as the judge: thousands of merges a request, which is a line of hex, as its answer is.
 *
 * A request is a table (1 byte: REGULAR, STATIC or COUNTER), a pool of rows (count: 2 bytes), the deletions that may be
 * active over them (count: 2 bytes), and merges (count: 4 bytes): for each how ('r' as a read does, Row.Merger; 'w' as
 * a memtable does, Rows.merge, one after the other), the active deletion's index (2 bytes), the number of rows (1 byte)
 * and their indexes (2 bytes each). The answer is one row for each merge.
 *
 * A row: 0 for none; otherwise 1, liveness (timestamp 8, TTL 4, expiration 8), deletion, 1 if it is shadowable, number of
 * columns (1) and for each its index (1) and its cell or, in a complex column, its deletion and cells (count: 2). A
 * deletion: marked for delete at (8), local deletion time (8). A cell: timestamp (8), TTL (4), local deletion time (8),
 * path and value with their lengths (4 each, a missing path's is -1). What a version says as its own "no deletion time"
 * is Long.MAX_VALUE here. The property `now` is that of versions whose merging asks the clock, in seconds.
 *
 * This is written for 5.0; dev/verify/oracle/merge_oracle.py puts in what older versions call otherwise.
 */
public class MergeOracle
{
    private static final int REGULAR = 0, STATIC = 1, COUNTER = 2;
    private static final UTF8Type TEXT = UTF8Type.instance;
    private static final Int32Type INT = Int32Type.instance;

    private final Map<Integer, List<ColumnMetadata>> tables = new HashMap<>();
    private final int now = Integer.getInteger("now");

    private MergeOracle()
    {
        for (AbstractType<?> type : Arrays.asList(TEXT, INT, ListType.getInstance(TEXT, false)))
            addColumn(REGULAR, type, false);
        addColumn(STATIC, TEXT, true);
        for (AbstractType<?> type : complexTypes())
        {
            addColumn(REGULAR, type, false);
            addColumn(STATIC, type, true);
        }
        addColumn(COUNTER, CounterColumnType.instance, false);
        addColumn(COUNTER, CounterColumnType.instance, false);
    }

    private void addColumn(int table, AbstractType<?> type, boolean isStatic)
    {
        List<ColumnMetadata> columns = tables.computeIfAbsent(table, any -> new ArrayList<>());
        String name = "c" + columns.size();
        columns.add(isStatic ? ColumnMetadata.staticColumn("ks", "t", name, type) : ColumnMetadata.regularColumn("ks", "t", name, type));
    }

    private static List<AbstractType<?>> complexTypes()
    {
        return Arrays.asList(SetType.getInstance(TEXT, true),
                             MapType.getInstance(INT, TEXT, true),
                             ListType.getInstance(TEXT, true),
                             SetType.getInstance(DecimalType.instance, true),
                             MapType.getInstance(DoubleType.instance, INT, true),
                             userType(Arrays.asList(INT, TEXT, INT)));
    }

    private static UserType userType(List<AbstractType<?>> types)
    {
        List<FieldIdentifier> names = new ArrayList<>();
        for (int i = 0; i < types.size(); i++)
            names.add(FieldIdentifier.forQuoted("f" + i));
        return new UserType("ks", TEXT.decompose("u"), names, types, true);
    }

    public static void main(String[] arguments) throws Exception
    {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.US_ASCII.name());
        System.setOut(System.err);
        DatabaseDescriptor.clientInitialization();
        // CounterContext asks CompactionManager whether it is a compactor, and that makes its threads.
        DatabaseDescriptor.getRawConfig().concurrent_compactors = 1;
        DatabaseDescriptor.setConcurrentValidations(1);
        MergeOracle oracle = new MergeOracle();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = requests.readLine(); line != null; line = requests.readLine())
        {
            answers.println(Hex.bytesToHex(oracle.answer(Hex.hexToBytes(line))));
            answers.flush();
        }
    }

    private byte[] answer(byte[] request) throws IOException
    {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(request));
        int table = in.readUnsignedByte();
        Row[] pool = new Row[in.readUnsignedShort()];
        for (int i = 0; i < pool.length; i++)
            pool[i] = readRow(table, in);
        DeletionTime[] active = new DeletionTime[in.readUnsignedShort()];
        for (int i = 0; i < active.length; i++)
            active[i] = readDeletion(in);
        ByteArrayOutputStream answers = new ByteArrayOutputStream();
        DataOutputStream merged = new DataOutputStream(answers);
        for (int count = in.readInt(); count > 0; count--)
        {
            int how = in.readUnsignedByte();
            DeletionTime over = active[in.readUnsignedShort()];
            Row[] rows = new Row[in.readUnsignedByte()];
            for (int i = 0; i < rows.length; i++)
                rows[i] = pool[in.readUnsignedShort()];
            writeRow(table, how == 'r' ? read(rows, over) : write(rows), merged);
        }
        return answers.toByteArray();
    }

    private Row read(Row[] rows, DeletionTime active)
    {
        Row.Merger merger = new Row.Merger(rows.length, true);
        for (int i = 0; i < rows.length; i++)
            merger.add(i, rows[i]);
        return merger.merge(active);
    }

    private Row write(Row[] rows)
    {
        Row merged = rows[0];
        for (int i = 1; i < rows.length; i++)
            merged = Rows.merge(merged, rows[i]);
        return merged;
    }

    private Row readRow(int table, DataInputStream in) throws IOException
    {
        in.readByte();
        LivenessInfo liveness = LivenessInfo.withExpirationTime(in.readLong(), in.readInt(), seconds(in));
        DeletionTime time = readDeletion(in);
        boolean isShadowable = in.readBoolean();
        Row.Deletion deletion = isShadowable ? Row.Deletion.shadowable(time) : Row.Deletion.regular(time);
        List<ColumnData> columns = new ArrayList<>();
        for (int count = in.readUnsignedByte(); count > 0; count--)
        {
            ColumnMetadata column = tables.get(table).get(in.readUnsignedByte());
            columns.add(column.isComplex() ? readComplex(column, in) : readCell(column, in));
        }
        Clustering<?> clustering = table == STATIC ? Clustering.STATIC_CLUSTERING : Clustering.EMPTY;
        return BTreeRow.create(clustering, liveness, deletion, BTree.build(columns, UpdateFunction.<ColumnData>noOp()));
    }

    private ComplexColumnData readComplex(ColumnMetadata column, DataInputStream in) throws IOException
    {
        ComplexColumnData.Builder builder = ComplexColumnData.builder();
        builder.newColumn(column);
        builder.addComplexDeletion(readDeletion(in));
        for (int count = in.readUnsignedShort(); count > 0; count--)
            builder.addCell(readCell(column, in));
        return builder.build();
    }

    private DeletionTime readDeletion(DataInputStream in) throws IOException
    {
        long markedForDeleteAt = in.readLong(), localDeletionTime = in.readLong();
        return localDeletionTime == Long.MAX_VALUE ? DeletionTime.LIVE : DeletionTime.build(markedForDeleteAt, localDeletionTime);
    }

    private Cell<?> readCell(ColumnMetadata column, DataInputStream in) throws IOException
    {
        long timestamp = in.readLong();
        int ttl = in.readInt();
        long localDeletionTime = seconds(in);
        ByteBuffer path = readBytes(in), value = readBytes(in);
        return new BufferCell(column, timestamp, ttl, localDeletionTime, value, path == null ? null : CellPath.create(path));
    }

    private static long seconds(DataInputStream in) throws IOException
    {
        long seconds = in.readLong();
        return seconds == Long.MAX_VALUE ? Cell.NO_DELETION_TIME : (long) seconds;
    }

    private static ByteBuffer readBytes(DataInputStream in) throws IOException
    {
        int length = in.readInt();
        if (length < 0)
            return null;
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return ByteBuffer.wrap(bytes);
    }

    private void writeRow(int table, Row row, DataOutputStream out) throws IOException
    {
        out.writeBoolean(row != null);
        if (row == null)
            return;
        LivenessInfo liveness = row.primaryKeyLivenessInfo();
        out.writeLong(liveness.timestamp());
        out.writeInt(liveness.ttl());
        writeSeconds(liveness.localExpirationTime(), out);
        writeDeletion(row.deletion().time(), out);
        out.writeBoolean(row.deletion().isShadowable());
        List<ColumnData> columns = new ArrayList<>();
        for (ColumnData data : row)
            columns.add(data);
        out.writeByte(columns.size());
        for (ColumnData data : columns)
        {
            out.writeByte(tables.get(table).indexOf(data.column()));
            if (data instanceof ComplexColumnData)
                writeComplex((ComplexColumnData) data, out);
            else
                writeCell((Cell<?>) data, out);
        }
    }

    private void writeComplex(ComplexColumnData data, DataOutputStream out) throws IOException
    {
        writeDeletion(data.complexDeletion(), out);
        List<Cell<?>> cells = new ArrayList<>();
        for (Cell<?> cell : data)
            cells.add(cell);
        out.writeShort(cells.size());
        for (Cell<?> cell : cells)
            writeCell(cell, out);
    }

    private static void writeDeletion(DeletionTime time, DataOutputStream out) throws IOException
    {
        out.writeLong(time.markedForDeleteAt());
        writeSeconds(time.localDeletionTime(), out);
    }

    private void writeCell(Cell<?> cell, DataOutputStream out) throws IOException
    {
        out.writeLong(cell.timestamp());
        out.writeInt(cell.ttl());
        writeSeconds(cell.localDeletionTime(), out);
        writeBytes(cell.path() == null ? null : cell.path().get(0), out);
        writeBytes(cell.buffer(), out);
    }

    private static void writeSeconds(long seconds, DataOutputStream out) throws IOException
    {
        out.writeLong(seconds == Cell.NO_DELETION_TIME ? Long.MAX_VALUE : seconds);
    }

    private static void writeBytes(ByteBuffer bytes, DataOutputStream out) throws IOException
    {
        out.writeInt(bytes == null ? -1 : bytes.remaining());
        if (bytes != null)
            out.write(ByteBufferUtil.getArray(bytes));
    }
}
