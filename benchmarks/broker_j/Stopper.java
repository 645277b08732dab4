import com.sun.jdi.Bootstrap;
import com.sun.jdi.Location;
import com.sun.jdi.Method;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.ThreadReference;
import com.sun.jdi.VMDisconnectedException;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.AttachingConnector;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.EventRequest;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;

/**
 * Stops the first thread of a Java process that comes to one instruction, and lets it go on.
 *
 * Argument: the port on loopback where the process listens for a debugger. Each line of standard
 * input is a command, and has one line as its answer: "arm CLASS METHOD DESCRIPTOR INDEX" (the
 * class must be loaded, and the index begin an instruction), "wait SECONDS" (the name of the stopped
 * thread, or "none"), "go". The process goes on when the input ends. Any failure ends the program.
 */
public final class Stopper {
    private final VirtualMachine machine;
    private ThreadReference stopped;

    private Stopper(VirtualMachine machine) {
        this.machine = machine;
    }

    public static void main(String[] arguments) throws Exception {
        AttachingConnector socket = Bootstrap.virtualMachineManager().attachingConnectors().stream()
            .filter(each -> each.name().equals("com.sun.jdi.SocketAttach")).findFirst().orElseThrow();
        Map<String, Connector.Argument> where = socket.defaultArguments();
        where.get("hostname").setValue("127.0.0.1");
        where.get("port").setValue(arguments[0]);
        Stopper stopper = new Stopper(socket.attach(where));
        System.out.println("attached");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null;) {
            System.out.println(stopper.answer(line.split(" ")));
        }
        try {
            stopper.machine.dispose();
        } catch (VMDisconnectedException gone) {
            System.out.println("the process has ended");
        }
    }

    private String answer(String[] words) throws Exception {
        return switch (words[0]) {
            case "arm" -> arm(words[1], words[2], words[3], Long.parseLong(words[4]));
            case "wait" -> await(Long.parseLong(words[1]));
            case "go" -> go();
            default -> throw new IllegalArgumentException("there is no command " + words[0]);
        };
    }

    private String arm(String name, String method, String descriptor, long index) {
        List<ReferenceType> types = machine.classesByName(name);
        if (types.size() != 1) {
            throw new IllegalStateException(types.size() + " classes " + name + " are loaded");
        }
        List<Method> methods = types.get(0).methodsByName(method, descriptor);
        Location at = methods.size() == 1 ? methods.get(0).locationOfCodeIndex(index) : null;
        if (at == null) {
            throw new IllegalStateException("no " + name + "." + method + descriptor + " at " + index);
        }
        machine.eventRequestManager().deleteAllBreakpoints();
        BreakpointRequest request = machine.eventRequestManager().createBreakpointRequest(at);
        request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        request.addCountFilter(1);
        request.enable();
        return "armed";
    }

    private String await(long seconds) throws InterruptedException {
        long until = System.nanoTime() + seconds * 1_000_000_000L;
        for (long left; (left = until - System.nanoTime()) > 0;) {
            var events = machine.eventQueue().remove(Math.max(1, left / 1_000_000));
            if (events == null) {
                continue;
            }
            for (Event event : events) {
                if (event instanceof BreakpointEvent hit) {
                    stopped = hit.thread();
                    return stopped.name().replace(' ', '_');
                }
            }
            events.resume();
        }
        machine.eventRequestManager().deleteAllBreakpoints();
        return "none";
    }

    private String go() {
        machine.eventRequestManager().deleteAllBreakpoints();
        stopped.resume();
        return "gone";
    }
}
