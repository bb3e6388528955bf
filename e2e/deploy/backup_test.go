package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	engine "github.com/callyard/callyard/e2e/fabric"
)

// healthy waits until every service that has a health check passes it.
func healthy(t *testing.T, p *engine.Project) {
	t.Helper()
	for name, s := range p.File.Services {
		if s.Health == nil {
			continue
		}
		eventually(t, name+" being healthy", func() error {
			status, said, err := p.Container(name).Health(t.Context())
			if err == nil && status != "healthy" {
				err = fmt.Errorf("it is %s: %s", status, said)
			}
			return err
		})
	}
}

// composeRun matches the commands of docs/how-to/deployment.md that run a service once.
var composeRun = regexp.MustCompile(`(?m)^docker compose -f deploy/compose\.yaml run --rm (nats-cli|init) (.+?)(?: *#.*)?$`)

// restores makes a held call, runs the commands of docs/how-to/deployment.md that back up, lose
// the NATS volume and restore it, and checks that the call is still held. The compose commands
// that stop, remove and start services are replaced with equivalent code.
func restores(t *testing.T, p *engine.Project, dir string, env map[string]string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "backup"), 0o700); err != nil { // compose would create it
		t.Fatal(err)
	}
	var backup, restore, verify []string
	for _, m := range composeRun.FindAllStringSubmatch(read(t, "../docs/how-to/deployment.md"), -1) {
		args := strings.Fields(m[2])
		switch {
		case strings.HasPrefix(m[2], "backup account "):
			backup = args
		case strings.HasPrefix(m[2], "backup restore "):
			restore = args
		case strings.HasPrefix(m[2], "audit verify "):
			verify = args
		}
	}
	if backup == nil || restore == nil || verify == nil {
		t.Fatalf("docs/how-to/deployment.md has no command for each of backup %q, restore %q and verify %q", backup, restore, verify)
	}
	agent := "X-API-Key: " + env["AGENT_KEY"]
	at, err := p.Container("frontdoor-1").Locate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	status, body := ask(t, "POST", at+"/servers/demo/tools/big", `{"bytes":20}`, agent)
	id := regexp.MustCompile(`"call_id":"([^"]+)"`).FindStringSubmatch(body)
	if status != 202 || id == nil {
		t.Fatalf("a call that is to be held: %d %s", status, body)
	}
	once(t, p, "nats-cli", backup)
	for name, s := range p.File.Services {
		if len(s.Profiles) == 0 && name != "init" && !strings.HasPrefix(name, "redis") {
			if err := p.Remove(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.Empty(t.Context(), "nats"); err != nil {
		t.Fatal(err)
	}
	if err := p.Up(t.Context(), "nats"); err != nil {
		t.Fatal(err)
	}
	once(t, p, "nats-cli", restore)
	if err := p.Up(t.Context(), "frontdoor-1", "approver", "worker-1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the held call being there again", func() error {
		at, err := p.Container("frontdoor-1").Locate(t.Context())
		if err != nil {
			return err
		}
		status, body := ask(t, "GET", at+"/calls/"+id[1], "", agent)
		if status != 200 || !strings.Contains(body, `"state":"held"`) {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	once(t, p, "init", verify)
}

// once runs a service with other arguments, like "docker compose run --rm", and fails
// the test unless it exits with 0.
func once(t *testing.T, p *engine.Project, service string, args []string) {
	t.Helper()
	s := p.File.Services[service]
	s.Command, s.Restart = args, "no"
	name := service + "-once"
	c, err := p.Run(t.Context(), name, s)
	if err != nil {
		t.Fatal(err)
	}
	var code int
	eventually(t, strings.Join(args, " ")+" ending", func() error {
		running, ended, err := c.Running(t.Context())
		if err == nil && running {
			err = fmt.Errorf("it runs")
		}
		code = ended
		return err
	})
	said, err := c.Logs(t.Context(), time.Time{})
	if code != 0 || err != nil {
		t.Fatalf("%s %v: code %d, %v\n%s", service, args, code, err, said)
	}
	t.Logf("%s %v:\n%s", service, args, said)
	if err := p.Remove(t.Context(), name); err != nil {
		t.Error(err)
	}
}
