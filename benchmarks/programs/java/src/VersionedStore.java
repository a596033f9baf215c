import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/** Does to versioned stores of Kafka Streams what programs/versioned_store.py does to those of pykstreams. */
public final class VersionedStore {
  private static final long RETENTION_MS = 60 * 60 * 1000;
  private static final long START_MS = 1_700_000_000_000L;
  private static final int COMMIT_EVERY = 10_000;
  private static final int VALUE_BYTES = 100;
  private static final int VALUES = 1009;
  private static final int LATE_ONE_IN = 5;
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private static long state = 42;
  private static String[] names;
  private static byte[][] values;

  /** Puts or reads: which key, and at which time. */
  private record Work(int[] keys, long[] times) {}

  private interface Part {
    long run(int from, int to);
  }

  public static void main(String[] arguments) {
    Map<String, String> job = new HashMap<>();
    for (String argument : arguments) {
      String[] parts = argument.split("=", 2);
      job.put(parts[0], parts[1]);
    }
    int keys = Integer.parseInt(job.get("keys"));
    int versions = Integer.parseInt(job.get("versions"));
    int reads = Integer.parseInt(job.get("reads"));
    values = new byte[VALUES][VALUE_BYTES];
    for (byte[] value : values) {
      for (int at = 0; at < VALUE_BYTES; at++) {
        value[at] = (byte) below(256);
      }
    }
    names = new String[keys];
    for (int number = 0; number < keys; number++) {
      names[number] = String.format("key-%016d", number);
    }
    Work puts = puts(versions, false);
    Work latest = new Work(new int[reads], new long[0]);
    for (int at = 0; at < reads; at++) {
      latest.keys[at] = (int) below(keys);
    }
    Work asked = new Work(new int[reads], new long[reads]);
    for (int at = 0; at < reads; at++) {
      asked.keys[at] = (int) below(keys);
      asked.times[at] = START_MS + below(RETENTION_MS);
    }
    Work late = puts(versions, true);

    try (TopologyTestDriver driver = driver(job.get("folder"))) {
      VersionedKeyValueStore<String, byte[]> store = driver.getVersionedKeyValueStore("ordered");
      measure("put", puts.keys.length, (from, to) -> put(store, puts, from, to));
      measure("get", reads, (from, to) -> get(store, latest, from, to));
      measure("get-as-of", reads, (from, to) -> getAsOf(store, asked, from, to));
      VersionedKeyValueStore<String, byte[]> other = driver.getVersionedKeyValueStore("late");
      measure("put-late", late.keys.length, (from, to) -> put(other, late, from, to));
    }
  }

  private static long below(long bound) {
    state = state * 6364136223846793005L + 1442695040888963407L;
    return (state >>> 33) % bound;
  }

  private static TopologyTestDriver driver(String folder) {
    Topology topology = new Topology();
    topology.addSource("source", new ByteArrayDeserializer(), new ByteArrayDeserializer(), "input");
    topology.addProcessor("processor", Idle::new, "source");
    for (String name : new String[] {"ordered", "late"}) {
      topology.addStateStore(
          Stores.versionedKeyValueStoreBuilder(
                  Stores.persistentVersionedKeyValueStore(name, Duration.ofMillis(RETENTION_MS)),
                  Serdes.String(),
                  Serdes.ByteArray())
              .withLoggingDisabled(),
          "processor");
    }
    Properties settings = new Properties();
    settings.put("application.id", "versions");
    settings.put("bootstrap.servers", "none:1");
    settings.put("state.dir", folder);
    return new TopologyTestDriver(topology, settings);
  }

  /** A store belongs to a processor. */
  private static final class Idle extends ContextualProcessor<byte[], byte[], Void, Void> {
    @Override
    public void process(Record<byte[], byte[]> record) {}
  }

  private static Work puts(int versions, boolean late) {
    int total = names.length * versions;
    Work puts = new Work(new int[total], new long[total]);
    int[] order = new int[names.length];
    for (int at = 0; at < order.length; at++) {
      order[at] = at;
    }
    int count = 0;
    for (int version = 0; version < versions; version++) {
      for (int at = order.length - 1; at > 0; at--) {
        int other = (int) below(at + 1);
        int moved = order[at];
        order[at] = order[other];
        order[other] = moved;
      }
      for (int key : order) {
        long now = count * RETENTION_MS / total;
        if (late && below(LATE_ONE_IN) == 0) {
          now = below(now + 1);
        }
        puts.keys[count] = key;
        puts.times[count] = START_MS + now;
        count++;
      }
    }
    return puts;
  }

  private static void measure(String name, int count, Part part) {
    int half = count / 2;
    long check = part.run(0, half);
    long began = SYSTEM.getProcessCpuTime();
    check += part.run(half, count);
    long spent = SYSTEM.getProcessCpuTime() - began;
    System.out.println(name + " " + (count - half) + " " + spent + " " + Long.toUnsignedString(check));
  }

  private static long put(VersionedKeyValueStore<String, byte[]> store, Work puts, int from, int to) {
    TopicPartition changelog = new TopicPartition("versions", 0);
    long total = 0;
    for (int start = from; start < to; start += COMMIT_EVERY) {
      for (int at = start; at < Math.min(start + COMMIT_EVERY, to); at++) {
        total += store.put(names[puts.keys[at]], values[at % VALUES], puts.times[at]);
      }
      store.commit(Map.of(changelog, (long) start));
    }
    return total;
  }

  private static long get(VersionedKeyValueStore<String, byte[]> store, Work latest, int from, int to) {
    long total = 0;
    for (int at = from; at < to; at++) {
      total += sum(store.get(names[latest.keys[at]]));
    }
    return total;
  }

  private static long getAsOf(VersionedKeyValueStore<String, byte[]> store, Work asked, int from, int to) {
    long total = 0;
    for (int at = from; at < to; at++) {
      total += sum(store.get(names[asked.keys[at]], asked.times[at]));
    }
    return total;
  }

  private static long sum(VersionedRecord<byte[]> found) {
    return found == null ? 1 : found.timestamp() + (found.value()[0] & 0xff);
  }
}
