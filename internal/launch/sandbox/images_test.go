package sandbox

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The example images of deploy/images, built as docs/how-to/containers.md says.
func TestTheExampleImagesServeMCPInASandbox(t *testing.T) {
	e := engine(t)
	for _, name := range []string{"demo", "node"} {
		t.Run(name, func(t *testing.T) {
			build := exec.CommandContext(t.Context(), filepath.Join("..", "..", "..", "deploy", "images", "build.sh"), name)
			var problems strings.Builder
			build.Stderr = &problems
			out, err := build.Output()
			if err != nil {
				t.Fatalf("building the image: %v\n%s", err, problems.String())
			}
			id := strings.TrimSpace(string(out))
			began := time.Now()
			s := spec(t, e, func(c *Config) { c.Image = id })
			if s.ImageID() != id {
				t.Errorf("the image %s is run as %s", id, s.ImageID())
			}
			sandbox := start(t, e, s)
			k := opened(t, sandbox)
			t.Logf("ready after %v", time.Since(began))
			args := map[string]string{"message": "hello"}
			if got, err := k.tool("echo", args); err != nil || !strings.Contains(got, "hello") {
				t.Errorf("echo said %q, %v; stderr %q", got, err, sandbox.StderrTail())
			}
			sandbox.Stdin.Close() // an honest server ends when nobody talks to it any more
			t.Logf("it %s", ended(t, sandbox))
		})
	}
}
