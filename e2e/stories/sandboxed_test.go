package stories

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	callyard "github.com/callyard/callyard/clients/go"

	"github.com/callyard/callyard/e2e/fabric"
)

// sandboxes returns the containers at the engine in which the server's calls run. The
// engine may permanently list an unknown container if it was removed twice at once.
func sandboxes(t *testing.T, image string) string {
	t.Helper()
	out, err := exec.Command("docker", "ps", "--all", "--quiet", "--filter", "label=dev.callyard.server=vault", "--filter", "ancestor="+image).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var there []string
	for _, id := range strings.Fields(string(out)) {
		out, err := exec.Command("docker", "container", "inspect", "--format", "{{.State.Status}}", id).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "No such container") {
			there = append(there, id+" "+string(out))
		}
	}
	return strings.Join(there, ", ")
}

func TestAHighRiskCallRunsInASandboxThatIsRemoved(t *testing.T) {
	f := sharedFabric(t)
	c := caller(t, f, f.URL())
	made, err := fabric.Build(t.Context(), all.source, "demo")
	must(t, err)
	image := fmt.Sprintf("callyard-stories/vault:%d", time.Now().UnixNano())
	must(t, fabric.BuildFrom(t.Context(), image, "FROM "+made["demo"]+"\nENV VAULT="+image+"\n", nil))
	defer func() {
		if out, err := exec.Command("docker", "image", "rm", "--force", image).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	w, err := f.AddWorker(t.Context(), fabric.Worker{
		Servers: fabric.Servers{"vault": {"riskLevel": 3, "docker": map[string]any{"image": image}}}, Engine: true,
	})
	must(t, err)
	for i := range 3 {
		r := calls(t, c, "vault", "echo", map[string]any{"message": fmt.Sprint(i)})
		if got := resultText(t, r); got != fmt.Sprintf("Echo: %d", i) {
			t.Errorf("it says %q", got)
		}
		if at := r.ExecutionEnvironment; at == nil || at.Isolation == nil || *at.Isolation != "container" || *at.DockerImage != image {
			t.Errorf("it ran at %+v", at)
		}
	}
	eventually(t, "the sandboxes being gone", func() error {
		if there := sandboxes(t, image); there != "" {
			return errors.New(there)
		}
		return nil
	})

	// Without a worker that has an engine, the call is refused and does not run elsewhere.
	must(t, w.Stop(t.Context(), time.Minute))
	eventually(t, "a refusal", func() error {
		a, err := c.CallToolWithResponse(t.Context(), "vault", "echo", nil, map[string]any{"message": "outside"})
		if err == nil && callyard.Check(a.HTTPResponse, a.Body) == nil {
			t.Fatalf("it ran: %s", a.Body)
		}
		return err
	})
}
