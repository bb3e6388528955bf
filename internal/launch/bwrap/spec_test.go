package bwrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

func TestSettingsThatWeakenTheSandboxAreRefused(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	good := Program{Command: "node"}
	for name, c := range map[string]struct {
		c   Config
		p   Program
		key string
	}{
		"writable volume":      {Config{Volumes: []string{"/srv/data:/data:rw"}}, good, "volumes"},
		"volume without ro":    {Config{Volumes: []string{"/srv/data:/data"}}, good, "volumes"},
		"the whole host":       {Config{Volumes: []string{"/:/host:ro"}}, good, "volumes"},
		"etc":                  {Config{Volumes: []string{"/etc:/x:ro"}}, good, "volumes"},
		"etc by a link":        {Config{Volumes: []string{link + ":/x:ro"}}, good, "volumes"},
		"keys":                 {Config{Volumes: []string{"/srv/me/.ssh:/x:ro"}}, good, "volumes"},
		"engine socket":        {Config{Volumes: []string{"/var/run/docker.sock:/x:ro"}}, good, "volumes"},
		"over proc":            {Config{Volumes: []string{"/srv/data:/proc/sys:ro"}}, good, "volumes"},
		"over the root":        {Config{Volumes: []string{"/srv/data:/:ro"}}, good, "volumes"},
		"over the system":      {Config{Volumes: []string{"/srv/data:/usr/bin:ro"}}, good, "volumes"},
		"relative":             {Config{Volumes: []string{"data:/x:ro"}}, good, "volumes"},
		"little memory":        {Config{Memory: 1}, good, "memory"},
		"endless memory":       {Config{Memory: -1}, good, "memory"},
		"endless processes":    {Config{PIDs: -1}, good, "pids"},
		"huge tmp":             {Config{Tmpfs: 1 << 40}, good, "tmpfs"},
		"endless time":         {Config{Time: -1}, good, "time"},
		"endless files":        {Config{Files: -1}, good, "files"},
		"endless file":         {Config{File: -1}, good, "file_size"},
		"relative folder":      {Config{Workdir: "x"}, good, "workdir"},
		"no command":           {Config{}, Program{}, "command"},
		"NUL in an argument":   {Config{}, Program{Command: "x", Args: []string{"a\x00"}}, "command"},
		"a loader's variable":  {Config{}, Program{Command: "x", Env: map[string]string{"LD_PRELOAD": "/x.so"}}, "env"},
		"bad variable":         {Config{Env: map[string]string{"A=B": ""}}, good, "env"},
		"NUL in a variable":    {Config{Env: map[string]string{"A": "\x00"}}, good, "env"},
		"two faults, in lines": {Config{PIDs: -1, Files: -1}, good, "files"},
	} {
		_, err := Resolve("s", c.c, c.p)
		if schema.KindOf(err) != schema.KindInvalidRequest || !strings.Contains(err.Error(), "bubblewrap."+c.key+` of the server "s": `) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSandboxDescriptionShowsItsLimits(t *testing.T) {
	s, err := Resolve("s", Config{Memory: 64 << 20, Volumes: []string{"/srv/nowhere:/data:ro"}, Env: map[string]string{"B": "secret"}}, Program{Command: "node", Args: []string{"hidden"}, Env: map[string]string{"A": "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for _, line := range s.Describe() {
		said.WriteString(line.Key + " " + line.Value + " " + line.From + "\n")
	}
	for _, want := range []string{"isolation bubblewrap: weaker than a container configured", "env A, B configured", "network none default", "memory 64 MiB of each process configured", "volume /srv/nowhere:/data:ro configured", "args [1 not shown]", "pids 64 default"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, said.String())
		}
	}
	if strings.Contains(said.String(), "secret") || strings.Contains(said.String(), "hidden") {
		t.Errorf("it says too much:\n%s", said.String())
	}
	if s.Time != 5*time.Minute {
		t.Errorf("its time is %v", s.Time)
	}
	for _, arg := range s.args(s.binds) {
		if strings.Contains(arg, "secret") {
			t.Errorf("anybody may read %q", arg)
		}
	}
}

func TestBubblewrapVersionIsChecked(t *testing.T) {
	for version, want := range map[string]bool{"0.8.0": true, "0.11.0": true, "1.0": true, "0.7.9": false, "0.4.1": false, "": false, "x.y": false} {
		if newEnough(version) != want {
			t.Errorf("%q is new enough: %t", version, !want)
		}
	}
}
