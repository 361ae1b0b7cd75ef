import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one JVM, since each start of one takes
 * seconds. A line of standard input is a command: what the tool reads from its own standard input,
 * its main class and its arguments, each in base64, with tabs between them. The answer is a line
 * too: exit status, output, errors.
 */
public class ToolServer {
    private static class Ended extends Error {
        Ended(int status) {
            super("exit " + status, null, false, false);
        }
    }

    private static final int NONE = -1;
    // Tools and their libraries may keep the streams that they found first.
    private static final ByteArrayOutputStream output = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream errors = new ByteArrayOutputStream();
    private static final List<Runnable> hooks = new ArrayList<>();
    private static int firstStatus = NONE;

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        System.setOut(new PrintStream(output, true, "UTF-8"));
        System.setErr(new PrintStream(errors, true, "UTF-8"));
        Exit.setExitProcedure((status, message) -> end(status));
        Exit.setHaltProcedure((status, message) -> end(status));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        String line;
        while ((line = commands.readLine()) != null) {
            byte[][] words = Arrays.stream(line.split("\t", -1))
                .map(Base64.getDecoder()::decode).toArray(byte[][]::new);
            System.setIn(new ByteArrayInputStream(words[0]));
            firstStatus = NONE;
            int status = run(words);
            hooks.forEach(Runnable::run); // a console producer is closed by one
            hooks.clear();
            answers.println(status + "\t" + taken(output) + "\t" + taken(errors));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void end(int status) {
        if (firstStatus == NONE) {
            firstStatus = status;
        }
        throw new Ended(status); // which some tools catch, and end once more
    }

    private static int run(byte[][] words) throws Exception {
        String[] arguments = new String[words.length - 2];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = new String(words[i + 2], "UTF-8");
        }
        try {
            Class<?> tool = Class.forName(new String(words[1], "UTF-8"));
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException wrapped) {
            if (!(wrapped.getCause() instanceof Ended)) {
                wrapped.getCause().printStackTrace();
                return 1;
            }
        }
        return firstStatus == NONE ? 0 : firstStatus;
    }

    private static String taken(ByteArrayOutputStream bytes) {
        System.out.flush();
        System.err.flush();
        String encoded = Base64.getEncoder().encodeToString(bytes.toByteArray());
        bytes.reset();
        return encoded;
    }
}
