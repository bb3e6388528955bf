package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/callyard/callyard/internal/mcptest"
)

// scriptedImage is the image name of the scripted servers.
var scriptedImage = fmt.Sprintf("callyard-e2e/scripted:%d", os.Getpid())

// images are built on first use. Images for the tests only are removed at
// the end.
var images struct {
	demo, scripted sync.Once
	err            error
	forget         bool
}

// docker runs the docker command with an engine; if host is empty, the default one.
func docker(host string, args ...string) (string, error) {
	cmd := exec.Command("docker", args...)
	cmd.Env = os.Environ()
	if host != "" {
		cmd.Env = append(cmd.Env, "DOCKER_HOST="+host)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), err
}

// demoInSandbox builds the example image and returns its name.
func demoInSandbox(t testing.TB) string {
	t.Helper()
	images.demo.Do(func() {
		out, err := exec.Command(filepath.Join(programs.root, "deploy/images/build.sh"), "demo").CombinedOutput()
		if err != nil {
			images.err = fmt.Errorf("building the example image: %w: %s", err, out)
		}
	})
	if images.err != nil {
		t.Fatalf("this test needs a container engine, which scripts/test.sh --setup brings: %v", images.err)
	}
	return "callyard/demo:local"
}

// scriptedInSandbox builds the image of the scripted servers at the engine.
func scriptedInSandbox(t testing.TB, host string) string {
	t.Helper()
	if host != "" {
		if err := buildScripted(host); err != nil {
			t.Fatal(err)
		}
		return scriptedImage
	}
	images.scripted.Do(func() {
		images.forget = true
		images.err = buildScripted("")
	})
	if images.err != nil {
		t.Fatalf("this test needs a container engine, which scripts/test.sh --setup brings: %v", images.err)
	}
	return scriptedImage
}

func buildScripted(host string) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := os.ReadFile(filepath.Join(programs.test, "scripted-server"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "scripted-server"), program, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY scripted-server /scripted-server\nENTRYPOINT [\"/scripted-server\"]\n"), 0o644); err != nil {
		return err
	}
	_, err = docker(host, "build", "--quiet", "--tag", scriptedImage, dir)
	return err
}

// forgetImages removes the image that only these tests use.
func forgetImages() error {
	if !images.forget {
		return nil
	}
	_, err := docker("", "rmi", "--force", scriptedImage)
	return err
}

// sandboxed returns a scripted server of high risk. If it were started on the host, its
// command would exist there: only the docker section prevents that.
func sandboxed(t testing.TB, mode string, more map[string]any) entry {
	e := scripted(mode)
	e.RiskLevel = 3
	e.Docker = inSandbox(t, "", mode, more)
	return e
}

// inSandbox returns the docker section of a scripted server.
func inSandbox(t testing.TB, host, mode string, more map[string]any) map[string]any {
	section := map[string]any{"image": scriptedInSandbox(t, host), "command": "/scripted-server", "args": []string{mode}, "env": mcptest.Env(mode)}
	for key, value := range more {
		section[key] = value
	}
	return section
}

// serverID returns a server name that no other test run uses at the engine.
func serverID(name string) string { return fmt.Sprintf("%s-%d", name, os.Getpid()) }

// sandboxesOf returns the containers of a server, running or not.
func sandboxesOf(t testing.TB, host, server string) []string {
	t.Helper()
	out, err := docker(host, "ps", "--all", "--quiet", "--filter", "label=dev.callyard.server="+server)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(out)
}

// noSandboxes waits until the server has no container.
func noSandboxes(t testing.TB, host, server string) {
	t.Helper()
	eventually(t, soon, "the containers of "+server+" are to be gone", func() error {
		if left := sandboxesOf(t, host, server); len(left) > 0 {
			return fmt.Errorf("%d are left", len(left))
		}
		return nil
	})
}

// environment returns the environment that a result reports, or nil if there is none.
func environment(t testing.TB, result []byte) map[string]any {
	t.Helper()
	env, _ := object(t, result)["execution_environment"].(map[string]any)
	return env
}
