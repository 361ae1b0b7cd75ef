// Writes kafka-2.5.1.txt: batches of every format by Apache Kafka's own classes, one per line as
// "name base64". Compile and run it with the jars of org.apache.kafka:kafka-clients:2.5.1:
//   javac -cp "libs/*" MakeBatches.java && java -cp "libs/*:." MakeBatches > kafka-2.5.1.txt

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Time;

public class MakeBatches {
    static final long APPEND_TIME = 1_600_000_009_999L;

    static void print(String name, ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        System.out.println(name + " " + Base64.getEncoder().encodeToString(bytes));
    }

    // The same records as in test_kafka_fixtures.py; the third offset leaves a gap.
    static MemoryRecords build(byte magic, CompressionType codec, TimestampType type) {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(ByteBuffer.allocate(1 << 16), magic,
            codec, type, 40L, APPEND_TIME,
            magic < 2 ? RecordBatch.NO_PRODUCER_ID : 4711L,
            magic < 2 ? RecordBatch.NO_PRODUCER_EPOCH : (short) 5,
            magic < 2 ? RecordBatch.NO_SEQUENCE : 17,
            false, false, magic < 2 ? RecordBatch.NO_PARTITION_LEADER_EPOCH : 8, 1 << 16);
        byte[] large = new byte[300];
        Arrays.fill(large, (byte) 'x');
        Header[] headers = {
            new RecordHeader("a", "1".getBytes()),
            new RecordHeader("\u00e9", (byte[]) null)};
        builder.appendWithOffset(40L, 1_600_000_000_000L, null, "value".getBytes());
        builder.appendWithOffset(41L, 1_600_000_000_070L, "key".getBytes(), null);
        if (magic < 2)
            builder.appendWithOffset(45L, 1_600_000_000_007L, "".getBytes(), large);
        else
            builder.appendWithOffset(45L, 1_600_000_000_007L, "".getBytes(), large, headers);
        return builder.build();
    }

    public static void main(String[] args) {
        TimestampType[] types = {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME};
        for (byte magic = 0; magic <= 2; magic++)
            for (CompressionType codec : CompressionType.values())
                for (TimestampType type : types) {
                    if (magic < 2 && codec == CompressionType.ZSTD)
                        continue;
                    if (magic == 0 && type == TimestampType.LOG_APPEND_TIME)
                        continue;
                    String name = magic + "/" + codec.name + "/" + type.name;
                    MemoryRecords records = build(magic, codec, type);
                    print("batch/" + name, records.buffer());
                    if (codec == CompressionType.ZSTD)
                        continue;
                    for (byte to = 0; to < magic; to++)
                        for (long from : new long[] {0L, 41L, 45L, 46L})
                            print("down/" + name + "/" + to + "/" + from,
                                records.downConvert(to, from, Time.SYSTEM).records().buffer());
                }
        for (ControlRecordType type : new ControlRecordType[] {ControlRecordType.ABORT, ControlRecordType.COMMIT})
            print("marker/" + type, MemoryRecords.withEndTransactionMarker(70L, 1_600_000_000_123L, 6,
                4711L, (short) 5, new EndTransactionMarker(type, 13)).buffer());
        ByteBuffer empty = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(empty, (byte) 2, 4711L, (short) 5, 17, 40L, 45L, 8,
            TimestampType.CREATE_TIME, 1_600_000_000_070L, false, false);
        empty.flip();
        print("empty", ByteBuffer.wrap(empty.array()));
    }
}
