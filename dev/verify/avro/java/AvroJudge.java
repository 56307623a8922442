import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;

import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

/**
 * Java's Avro as a judge of messages. All numbers are ints, all texts and bytes have their length before them.
 *
 * <pre>
 * request: schema (a record), count of names, names, count of messages, messages
 * answer, for each message: 0 if it is refused, otherwise 1, the end of each field, the message as Java writes it, and
 *     as Java reads it with a schema that has the fields of these names
 * </pre>
 */
public final class AvroJudge
{
    private static final int MOST = 1000; // items that room is made for before they are read

    private final Schema schema;
    private final List<Reader> fields = new ArrayList<>();
    private final Schema chosen;
    private final Reader resolving;

    private AvroJudge(Schema schema, List<String> names)
    {
        this.schema = schema;
        for (Schema.Field field : schema.getFields())
            fields.add(new Reader(field.schema(), field.schema()));
        List<Schema.Field> kept = new ArrayList<>();
        for (String name : names)
            kept.add(new Schema.Field(name, schema.getField(name).schema()));
        chosen = Schema.createRecord(schema.getName(), null, schema.getNamespace(), false, kept);
        resolving = new Reader(schema, chosen);
    }

    /** Keeps the order of maps, and believes no count. */
    private static final class Reader extends GenericDatumReader<Object>
    {
        Reader(Schema writer, Schema reader)
        {
            super(writer, reader);
        }

        @Override
        protected Object newArray(Object old, int size, Schema schema)
        {
            return new GenericData.Array<>(Math.max(0, Math.min(size, MOST)), schema);
        }

        @Override
        protected Object newMap(Object old, int size)
        {
            return new LinkedHashMap<>();
        }
    }

    public static void main(String[] arguments) throws IOException
    {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        DataOutputStream out = new DataOutputStream(
            new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 20));
        System.setOut(System.err); // what Avro logs is no answer
        while (true)
        {
            byte[] schema;
            try
            {
                schema = bytes(in);
            }
            catch (EOFException end)
            {
                return;
            }
            List<String> names = new ArrayList<>();
            for (int count = in.readInt(); count > 0; count--)
                names.add(text(bytes(in)));
            AvroJudge judge = new AvroJudge(new Schema.Parser().parse(text(schema)), names);
            for (int count = in.readInt(); count > 0; count--)
                judge.answer(bytes(in), out);
            out.flush();
        }
    }

    private void answer(byte[] message, DataOutputStream out) throws IOException
    {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        DataOutputStream answer = new DataOutputStream(said);
        try
        {
            BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(message, null);
            GenericData.Record record = new GenericData.Record(schema);
            for (int i = 0; i < fields.size(); i++)
            {
                record.put(i, fields.get(i).read(null, decoder));
                answer.writeInt(message.length - decoder.inputStream().available());
            }
            if (!decoder.isEnd())
                throw new IOException("more bytes");
            write(answer, encoded(schema, record));
            Object resolved = resolving.read(null, DecoderFactory.get().binaryDecoder(message, null));
            write(answer, encoded(chosen, resolved));
        }
        catch (Exception | OutOfMemoryError | StackOverflowError refusal)
        {
            out.writeInt(0);
            return;
        }
        out.writeInt(1);
        said.writeTo(out);
    }

    private static byte[] encoded(Schema schema, Object value) throws IOException
    {
        ByteArrayOutputStream made = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(made, null);
        new GenericDatumWriter<>(schema).write(value, encoder);
        encoder.flush();
        return made.toByteArray();
    }

    private static byte[] bytes(DataInputStream in) throws IOException
    {
        byte[] found = new byte[in.readInt()];
        in.readFully(found);
        return found;
    }

    private static void write(DataOutputStream out, byte[] data) throws IOException
    {
        out.writeInt(data.length);
        out.write(data);
    }

    private static String text(byte[] data)
    {
        return new String(data, StandardCharsets.UTF_8);
    }
}
