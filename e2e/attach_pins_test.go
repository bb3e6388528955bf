package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/callyard/callyard/pkg/bus/porttest"
)

// attachedVersion is a program whose tool pay has the version as its description, and records
// each run in a file of that name.
const attachedVersion = `
import os

from callyard import attach

tools = attach.Server("bank")


@tools.tool()
async def pay() -> str:
    """VERSION"""
    with open(os.path.join(os.environ["FOLDER"], "VERSION"), "a") as file:
        file.write("x")
    return "paid by VERSION"


attach.run(os.environ["ATTACH_URL"], tools, key=os.environ["ATTACH_KEY"])
`

// A program that attaches with a changed definition waits while a program with the accepted
// definition serves. When that one has left, the tool is neither run nor listed until an operator
// accepts the new definition.
func TestAProgramThatAttachesWithAChangedDefinitionIsInQuarantine(t *testing.T) {
	t.Parallel()
	key, file := newAttachKey(t, "bank")
	entry, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(string(entry), `"riskLevel":1`, `"riskLevel":1,"pin":"quarantine"`, 1))
	at := fmt.Sprintf("127.0.0.1:%d", porttest.Port(t))
	s := setup{servers: file, data: t.TempDir(), listen: porttest.Address(t), env: []string{quickStop, "CALLYARD_WORKER_ATTACH_LISTEN=" + at}}
	up := startUp(t, s)
	folder := t.TempDir()
	attach := func(version string) *process {
		source := filepath.Join(folder, version+".py")
		write(t, source, strings.ReplaceAll(attachedVersion, "VERSION", version))
		return start(t, program{name: version, path: filepath.Join(programs.root, ".cache/python/bin/python"), args: []string{source}, env: []string{
			"ATTACH_URL=ws://" + at, "ATTACH_KEY=" + key, "FOLDER=" + folder, "PYTHONPATH=" + filepath.Join(programs.root, "clients", "python"),
			"PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
		}})
	}
	runs := func(version string) int {
		text, err := os.ReadFile(filepath.Join(folder, version))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return len(text)
	}
	answers := func(d *door, status int, text string) {
		t.Helper()
		d.eventually(t, startWithin, text, func() error {
			a, err := d.tryCall("bank", "pay", `{}`)
			if err == nil && (a.status != status || !strings.Contains(string(a.body), text)) {
				err = fmt.Errorf("%d: %s", a.status, a.body)
			}
			return err
		})
	}
	listed := func(d *door, want bool) {
		t.Helper()
		for _, path := range []string{"/tools", "/tools?format=openai", "/servers/bank/openapi.json"} {
			if text := string(d.get(t, path)); strings.Contains(text, `"description":"v`) != want {
				t.Errorf("%s has the tool: %v, want %v: %.500s", path, !want, want, text)
			}
		}
		list, err := d.mcpClient(t, "/mcp", legacy, nil).ListTools(t.Context(), nil)
		if err != nil || (len(list.Tools) > 0) != want {
			t.Errorf("/mcp lists %d tools (%v), want some: %v", len(list.Tools), err, want)
		}
	}

	first := attach("v1")
	up.waitServers(t, 1, "bank")
	answers(up, 200, "paid by v1")
	listed(up, true)

	l := startLoad(t, 4, func(int, int) error {
		_, err := up.tryCall("bank", "pay", `{}`)
		return err
	})
	second := attach("v2")
	up.says(t, "an attached program is not used yet")
	l.more(t, 50)
	answers(up, 200, "paid by v1")
	first.signal(t, syscall.SIGTERM)
	first.wait(t, stopWithin)
	answers(up, http.StatusForbidden, "is in quarantine")
	l.more(t, 50)
	l.end()
	listed(up, false)
	up.stop(t)

	again := startUp(t, s) // the record survives a restart of the front door and the worker
	answers(again, http.StatusForbidden, "is in quarantine")
	listed(again, false)
	if v1, v2 := runs("v1"), runs("v2"); v1 == 0 || v2 != 0 {
		t.Errorf("v1 ran %d times, v2 %d times before it was accepted", v1, v2)
	}
	if code, out, fault := command(t, []string{"CALLYARD_URL=" + again.url}, "tools", "accept", "bank", "--all", "--yes"); code != 0 {
		t.Fatalf("accept exits with %d: %s%s", code, out, fault)
	}
	answers(again, 200, "paid by v2")
	listed(again, true)
	if runs("v2") == 0 {
		t.Error("the accepted version did not run")
	}
	second.signal(t, syscall.SIGTERM)
	second.wait(t, stopWithin)
	again.stop(t)
}
