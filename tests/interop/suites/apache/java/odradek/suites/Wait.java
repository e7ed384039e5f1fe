package odradek.suites;

import java.util.concurrent.Callable;

/** Waits for a condition that changes in another process. */
public final class Wait {
    private static final long PAUSE_MS = 50;

    private Wait() {
    }

    /** Asks for the condition until it is true. An exception counts as false; the last one is the cause of the error. */
    public static void until(Callable<Boolean> condition, long withinMs, String otherwise) throws InterruptedException {
        long end = System.currentTimeMillis() + withinMs;
        Exception last = null;
        while (System.currentTimeMillis() < end) {
            try {
                if (condition.call())
                    return;
                last = null;
            } catch (InterruptedException e) {
                throw e;
            } catch (Exception e) {
                last = e;
            }
            Thread.sleep(PAUSE_MS);
        }
        throw new AssertionError(otherwise, last);
    }
}
