import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;

/** Runs a workload on Kafka Streams until SIGTERM comes; arguments and output are those of programs/job.py. */
public final class Bench {
  public static void main(String[] arguments) {
    Map<String, String> job = new HashMap<>();
    for (String argument : arguments) {
      String[] parts = argument.split("=", 2);
      job.put(parts[0], parts[1]);
    }
    String workload = job.get("workload");
    Topology topology = Workloads.build(job);
    Properties settings = settings(job);
    KafkaStreams streams =
        job.get("guarantee").equals(StreamsConfig.EXACTLY_ONCE_V2)
            ? new KafkaStreams(topology, settings, new TransactionReport(job.get("measured")))
            : new KafkaStreams(topology, settings);
    if (workload.equals("restore")) {
      streams.setGlobalStateRestoreListener(new RestoreReport());
    } else {
      Progress.report(0);
    }
    streams.setUncaughtExceptionHandler(
        error -> {
          error.printStackTrace();
          Runtime.getRuntime().halt(1);
          return null;
        });
    // as pykstreams does: who comes next need not wait until the group misses this member
    CloseOptions leaving = CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(leaving)));
    streams.start();
  }

  private static Properties settings(Map<String, String> job) {
    Properties settings = new Properties();
    settings.put("application.id", job.get("application_id"));
    settings.put("bootstrap.servers", job.get("brokers"));
    settings.put("state.dir", job.get("state_dir"));
    settings.put("num.stream.threads", 1);
    settings.put("replication.factor", 1);
    settings.put("processing.guarantee", job.get("guarantee"));
    settings.put("auto.offset.reset", "earliest");
    settings.put("commit.interval.ms", job.get("commit_interval_ms"));
    settings.put("statestore.cache.max.bytes", job.get("cache_bytes"));
    settings.put("producer.batch.size", job.get("batch_bytes"));
    settings.put("producer.linger.ms", job.get("linger_ms"));
    if (job.get("count_reads").equals("yes")) {
      Progress.countsReads = true;
      settings.put("dsl.store.suppliers.class", CountingStores.class.getName());
    }
    if (!job.get("workload").equals("restore")) {
      settings.put("main.consumer.interceptor.classes", CommitReport.class.getName());
      settings.put("main.consumer." + CommitReport.MEASURED, job.get("measured"));
    }
    return settings;
  }
}
