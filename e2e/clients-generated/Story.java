import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.CallsApi;
import org.openapitools.client.model.CallAnswer;
import org.openapitools.client.model.CallRequest;
import org.openapitools.client.model.CompletedCall;
import org.openapitools.client.model.ConfirmationRequest;

/** Runs a tool, and one that is held, with the client that openapi-generator makes for Java. */
public class Story {
  public static void main(String[] args) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("CALLYARD_URL"));
    CallsApi calls = new CallsApi(client);
    for (CallRequest request :
        new CallRequest[] {
          new CallRequest().server("demo").tool("echo").arguments(Map.of("message", "hello")),
          new CallRequest().server("demo").tool("add").arguments(Map.of("a", 1, "b", 2)),
        }) {
      CallAnswer answer = calls.createCall(request, null, null, null, null, null, null, null, null);
      Object actual = answer.getActualInstance();
      if (actual instanceof CompletedCall done) {
        System.out.println("completed " + done.getContent().get(0).getText());
      } else if (actual instanceof ConfirmationRequest held) {
        System.out.println("held " + held.getToolName());
      } else {
        System.out.println("neither: " + actual.getClass());
      }
    }
  }
}
