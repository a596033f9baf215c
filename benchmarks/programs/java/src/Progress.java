import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/** Writes a line of progress: how many records are done with, and the time and CPU time of this process. */
final class Progress {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  static void report(long records) {
    long now = System.currentTimeMillis() * 1_000_000;
    System.out.println("progress " + records + " " + now + " " + SYSTEM.getProcessCpuTime());
    System.out.flush();
  }

  private Progress() {}
}
