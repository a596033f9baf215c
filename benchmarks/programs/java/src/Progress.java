import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;

/** Writes a line of progress: how many records are done with, and the time and CPU time of this process. */
final class Progress {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  /** Reads of stores, in a run that counts them. */
  static final AtomicLong READS = new AtomicLong();

  static boolean countsReads = false;

  static void report(long records) {
    if (countsReads) {
      System.out.println("reads " + READS.get());
    }
    long now = System.currentTimeMillis() * 1_000_000;
    System.out.println("progress " + records + " " + now + " " + SYSTEM.getProcessCpuTime());
    System.out.flush();
  }

  private Progress() {}
}
