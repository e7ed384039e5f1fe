package odradek.suites;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import java.util.Random;

/** A process of Odradek: a broker, a controller, or both. */
public final class Node {
    private static final String PROGRAM = System.getProperty("odradek.program");
    /** The command of nursery.py. Without one, each node is an `odradek run` of its own. */
    private static final String NURSERY = System.getProperty("odradek.nursery", "");
    private static final long READY_WITHIN_MS = 60_000;
    private static final long STOPPED_WITHIN_MS = 20_000;
    private static final int LOG_LINES = 8;
    /** Ports below the ones that Linux gives to clients, so that a stopped broker finds its own port free again. */
    private static final int FIRST_PORT = 21_000;
    private static final int LAST_PORT = 31_900;

    private static int nextPort = FIRST_PORT + new Random().nextInt(9_000);

    public final int id;
    public final Properties properties;
    private final Path file;
    private final Path log;
    private final Path ready;
    private ProcessHandle process;

    public Node(int id, Properties properties, Path folder) throws IOException {
        this.id = id;
        this.properties = properties;
        this.file = folder.resolve("node-" + id + ".properties");
        this.log = folder.resolve("node-" + id + ".log");
        this.ready = folder.resolve("node-" + id + ".ready");
        try (OutputStream out = Files.newOutputStream(file)) {
            properties.store(out, null);
        }
    }

    public static synchronized int freePort() throws IOException {
        for (int attempt = FIRST_PORT; attempt < LAST_PORT; attempt++) {
            int port = nextPort;
            nextPort = port == LAST_PORT ? FIRST_PORT : port + 1;
            try (ServerSocket socket = new ServerSocket()) {
                socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                return port;
            } catch (IOException taken) {
                // another process has it
            }
        }
        throw new IOException("no free port from " + FIRST_PORT + " to " + LAST_PORT);
    }

    public void launch() throws IOException {
        if (isAlive())
            return;
        Files.deleteIfExists(ready);
        process = NURSERY.isEmpty() ? run() : Nursery.start(log, ready, file);
        ProcessHandle started = process;
        Runtime.getRuntime().addShutdownHook(new Thread(started::destroyForcibly));
    }

    private ProcessHandle run() throws IOException {
        return new ProcessBuilder(PROGRAM, "run", file.toString())
                .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .redirectOutput(ProcessBuilder.Redirect.to(ready.toFile()))
                .start().toHandle();
    }

    public void awaitReady() throws IOException, InterruptedException {
        long end = System.currentTimeMillis() + READY_WITHIN_MS;
        while (!Files.exists(ready) || !Files.readString(ready).contains("ready ")) {
            if (!process.isAlive())
                throw notReady("has ended");
            if (System.currentTimeMillis() > end)
                throw notReady("is not ready after " + READY_WITHIN_MS + " ms");
            Thread.sleep(10);
        }
    }

    private IllegalStateException notReady(String state) throws IOException {
        List<String> lines = Files.exists(log) ? Files.readAllLines(log) : List.of();
        String tail = String.join("\n", lines.subList(Math.max(0, lines.size() - LOG_LINES), lines.size()));
        return new IllegalStateException("Odradek node " + id + " " + state + ": " + tail);
    }

    public boolean isAlive() {
        return process != null && process.isAlive();
    }

    /** Tells the process to stop, and does not wait. */
    public void stop() {
        if (isAlive())
            process.destroy();
    }

    /** Waits until the process has ended. A process that does not stop is killed, and fails the test. */
    public void awaitStopped() throws InterruptedException {
        if (process == null || ends(STOPPED_WITHIN_MS))
            return;
        process.destroyForcibly();
        ends(STOPPED_WITHIN_MS);
        throw new AssertionError("Odradek node " + id + " did not stop within " + STOPPED_WITHIN_MS + " ms: " + log);
    }

    private boolean ends(long withinMs) throws InterruptedException {
        long end = System.currentTimeMillis() + withinMs;
        while (process.isAlive() && System.currentTimeMillis() < end)
            Thread.sleep(10);
        return !process.isAlive();
    }

    /** The process that forks into nodes. */
    private static final class Nursery {
        private static Process process;

        static synchronized ProcessHandle start(Path log, Path ready, Path file) throws IOException {
            if (process == null) {
                process = new ProcessBuilder(NURSERY.split(" ")).redirectError(ProcessBuilder.Redirect.INHERIT).start();
                Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
            }
            String line = log.toAbsolutePath() + "\t" + ready.toAbsolutePath() + "\t" + file.toAbsolutePath() + "\n";
            process.getOutputStream().write(line.getBytes(StandardCharsets.UTF_8));
            process.getOutputStream().flush();
            StringBuilder id = new StringBuilder();
            for (int read = process.getInputStream().read(); read != '\n'; read = process.getInputStream().read()) {
                if (read < 0)
                    throw new IOException("nursery.py has ended");
                id.append((char) read);
            }
            return ProcessHandle.of(Long.parseLong(id.toString())).orElseThrow(() -> new IOException("ended at once: " + log));
        }
    }
}
