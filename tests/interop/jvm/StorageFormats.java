import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AbortedTxn;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesVersion;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.*;

/**
 * Apache Kafka's own classes for the files of a log, driven by lines on standard input, one answer a line:
 * files that they write to compare ours with, files of ours that they read, and rules to check ours against.
 */
public class StorageFormats {
    private static final TopicPartition PARTITION = new TopicPartition("orders", 0);
    private static final LogDirFailureChannel FAILURES = new LogDirFailureChannel(1);

    private static File dir;
    private static ProducerStateManager producers;
    private static LeaderEpochFileCache epochs;

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = answer(line.split(" "));
            } catch (Exception e) {
                answer = e.getClass().getSimpleName();
            }
            answers.append(answer).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "dir": return use(new File(words[1]));
            case "write": return write();
            case "read": return read();
            case "batch": return batch(words);
            case "marker": return marker(words);
            case "unstable": return unstable(num(words[1]));
            case "expire": producers.removeExpiredProducers(num(words[1])); return String.valueOf(producers.activeProducers().keySet().stream().sorted().toList());
            case "snapshot": return String.valueOf(producers.takeSnapshot(true).map(File::getName).orElse("none"));
            case "reload": producers.truncateAndReload(num(words[1]), num(words[2]), num(words[3])); return String.valueOf(producers.mapEndOffset());
            case "assign": epochs.assign((int) num(words[1]), num(words[2])); return String.valueOf(epochs.epochWithOffsets());
            case "cut-end": epochs.truncateFromEndAsyncFlush(num(words[1])); return String.valueOf(epochs.epochWithOffsets());
            case "cut-start": epochs.truncateFromStartAsyncFlush(num(words[1])); return String.valueOf(epochs.epochWithOffsets());
            case "end-of": { Map.Entry<Integer, Long> end = epochs.endOffsetFor((int) num(words[1]), num(words[2])); return end.getKey() + " " + end.getValue(); }
            case "epoch-at": { var epoch = epochs.epochForOffset(num(words[1])); return epoch.isPresent() ? "" + epoch.getAsInt() : "none"; }
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    private static long num(String word) {
        return Long.parseLong(word);
    }

    private static File file(String name) {
        return new File(dir, name);
    }

    private static String use(File folder) throws Exception {
        dir = folder;
        dir.mkdirs();
        producers = new ProducerStateManager(PARTITION, dir, 60_000, new ProducerStateManagerConfig(86_400_000, false), Time.SYSTEM);
        epochs = new LeaderEpochFileCache(PARTITION, new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(dir), FAILURES), new Later());
        return "ok";
    }

    /** Truncations are written later, by nobody here: what counts is what they leave. */
    private static class Later implements Scheduler {
        public void startup() { }
        public void shutdown() { }
        public java.util.concurrent.ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) { return null; }
        public void resizeThreadPool(int size) { }
    }

    /** One file of each format, with the values that the test writes too. */
    private static String write() throws Exception {
        OffsetIndex offsets = new OffsetIndex(file("00000000000000001000.index"), 1000, 1024);
        offsets.append(1010, 100);
        offsets.append(1035, 400);
        offsets.trimToValidSize();
        offsets.close();
        TimeIndex times = new TimeIndex(file("00000000000000001000.timeindex"), 1000, 1024);
        times.maybeAppend(1_700_000_000_000L, 1010);
        times.maybeAppend(1_700_000_000_999L, 1035);
        times.trimToValidSize();
        times.close();
        TransactionIndex aborted = new TransactionIndex(1000, file("00000000000000001000.txnindex"));
        aborted.append(abortedTxn(4000, 1005, 1019, 1012));
        aborted.append(abortedTxn(4001, 1012, 1030, 1031));
        aborted.close();
        epochs.assign(0, 0);
        epochs.assign(5, 1010);
        Map<TopicPartition, Long> points = new LinkedHashMap<>();
        points.put(PARTITION, 1035L);
        new OffsetCheckpointFile(file("recovery-point-offset-checkpoint"), FAILURES).write(points);
        new CleanShutdownFileHandler(dir.getPath()).write(17);
        PartitionMetadataFile metadata = new PartitionMetadataFile(PartitionMetadataFile.newFile(dir), FAILURES);
        metadata.record(Uuid.fromString("5BZ1oqBgQ4e1X7pCzHiGjQ"));
        metadata.maybeFlush();
        MetaProperties properties = new MetaProperties.Builder().setVersion(MetaPropertiesVersion.V1).setNodeId(3)
            .setClusterId("4L6g3nShT-eMCtK--X86sw").setDirectoryId(Uuid.fromString("5BZ1oqBgQ4e1X7pCzHiGjQ")).build();
        PropertiesUtils.writePropertiesFile(properties.toProperties(), file("meta.properties").getPath(), true);
        return "ok";
    }

    private static AbortedTxn abortedTxn(long producerId, long first, long last, long lastStable) {
        return new AbortedTxn().setProducerId(producerId).setFirstOffset(first).setLastOffset(last)
            .setLastStableOffset(lastStable);
    }

    /** What Kafka makes of the same files, whoever wrote them. */
    private static String read() throws Exception {
        List<Object> found = new ArrayList<>();
        OffsetIndex offsets = new OffsetIndex(file("00000000000000001000.index"), 1000, 1024);
        offsets.sanityCheck();
        found.add(offsets.entries() + " " + offsets.lookup(1034) + " " + offsets.lastOffset());
        TimeIndex times = new TimeIndex(file("00000000000000001000.timeindex"), 1000, 1024);
        times.sanityCheck();
        found.add(times.entries() + " " + times.lookup(1_700_000_000_998L) + " " + times.lastEntry());
        TransactionIndex aborted = new TransactionIndex(1000, file("00000000000000001000.txnindex"));
        aborted.sanityCheck();
        found.add(aborted.allAbortedTxns());
        found.add(new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(dir), FAILURES).read());
        found.add(new OffsetCheckpointFile(file("recovery-point-offset-checkpoint"), FAILURES).read());
        found.add(new CleanShutdownFileHandler(dir.getPath()).read());
        found.add(new PartitionMetadataFile(PartitionMetadataFile.newFile(dir), FAILURES).read().encode().replace('\n', ','));
        found.add(new MetaProperties.Builder(PropertiesUtils.readPropertiesFile(file("meta.properties").getPath())).build());
        return found.toString();
    }

    /** batch ORIGIN PID EPOCH SEQUENCE COUNT OFFSET TIMESTAMP TRANSACTIONAL */
    private static String batch(String[] words) throws Exception {
        AppendOrigin origin = AppendOrigin.valueOf(words[1]);
        long pid = num(words[2]);
        short epoch = (short) num(words[3]);
        int first = (int) num(words[4]);
        int delta = (int) num(words[5]) - 1;
        int last = first < 0 ? first : first > Integer.MAX_VALUE - delta ? delta - (Integer.MAX_VALUE - first) - 1 : first + delta;
        long offset = num(words[6]);
        Optional<ProducerStateEntry> known = producers.lastEntry(pid);
        if (origin == AppendOrigin.CLIENT && known.isPresent() && known.get().producerEpoch() == epoch) {
            for (BatchMetadata cached : known.get().batchMetadata()) {
                if (cached.firstSeq() == first && cached.lastSeq() == last) {
                    return "duplicate of " + cached.firstOffset();
                }
            }
        }
        ProducerAppendInfo append = producers.prepareUpdate(pid, origin);
        append.appendDataBatch(epoch, first, last, num(words[7]), new LogOffsetMetadata(offset), offset + delta, words[8].equals("1"));
        producers.update(append);
        producers.updateMapEndOffset(offset + delta + 1);
        return "ok";
    }

    /** marker ORIGIN PID EPOCH COORDINATOR-EPOCH OFFSET TIMESTAMP ABORTED TRANSACTION-VERSION */
    private static String marker(String[] words) throws Exception {
        long offset = num(words[5]);
        ControlRecordType type = words[7].equals("1") ? ControlRecordType.ABORT : ControlRecordType.COMMIT;
        ProducerAppendInfo append = producers.prepareUpdate(num(words[2]), AppendOrigin.valueOf(words[1]));
        Optional<CompletedTxn> completed = append.appendEndTxnMarker(new EndTransactionMarker(type, (int) num(words[4])),
            (short) num(words[3]), offset, num(words[6]), (short) num(words[8]));
        producers.update(append);
        long stable = -1;
        if (completed.isPresent()) {
            stable = producers.lastStableOffset(completed.get());
            producers.completeTxn(completed.get());
        }
        producers.updateMapEndOffset(offset + 1);
        return completed.map(txn -> txn.firstOffset() + "-" + txn.lastOffset() + (txn.isAborted() ? " aborted" : " committed")).orElse("nothing") + " " + stable;
    }

    private static String unstable(long highWatermark) {
        producers.onHighWatermarkUpdated(highWatermark);
        return producers.firstUnstableOffset().map(offset -> "" + offset.messageOffset).orElse("none");
    }
}
