package sandbox

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/launch/hostpath"
	"github.com/callyard/callyard/pkg/schema"
)

var update = flag.Bool("update", false, "write the golden files of this package, the seccomp profile among them")

// weakenedSettings are ways to make a sandbox wider. allow is what accepts it; empty where
// nothing does.
func weakenedSettings(t *testing.T) []struct {
	name  string
	c     Config
	key   string
	allow []string
} {
	home := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/etc", home); err != nil {
		t.Fatal(err)
	}
	no := false
	return []struct {
		name  string
		c     Config
		key   string
		allow []string
	}{
		{"privileged", Config{Privileged: true}, "privileged", []string{"privileged"}},
		{"host network", Config{Network: "host"}, "network", []string{"network:host"}},
		{"default network", Config{Network: "bridge"}, "network", []string{"network:bridge"}},
		{"network of another container", Config{Network: "container:web"}, "network", []string{"network:container:web"}},
		{"host processes", Config{PIDMode: "host"}, "pid", []string{"pid:host"}},
		{"host ipc", Config{IPCMode: "host"}, "ipc", []string{"ipc:host"}},
		{"host name", Config{UTSMode: "host"}, "uts", []string{"uts:host"}},
		{"host users", Config{UsernsMode: "host"}, "userns", []string{"userns:host"}},
		{"host cgroups", Config{CgroupnsMode: "host"}, "cgroup", []string{"cgroup:host"}},
		{"other cgroup", Config{CgroupParent: "/"}, "cgroup_parent", []string{"cgroup-parent:/"}},
		{"all capabilities", Config{CapAdd: []string{"ALL"}}, "cap_add", []string{"cap:CAP_ALL"}},
		{"one capability", Config{CapAdd: []string{"sys_admin"}}, "cap_add", []string{"cap:CAP_SYS_ADMIN"}},
		{"no seccomp", Config{SecurityOpt: []string{"seccomp=unconfined"}}, "security_opt", []string{"security-opt:seccomp=unconfined"}},
		{"no seccomp, old form", Config{SecurityOpt: []string{"seccomp:unconfined"}}, "security_opt", []string{"security-opt:seccomp=unconfined"}},
		{"custom seccomp profile", Config{SecurityOpt: []string{"seccomp={}"}}, "security_opt", []string{"security-opt:seccomp={}"}},
		{"no apparmor", Config{SecurityOpt: []string{"apparmor=unconfined"}}, "security_opt", []string{"security-opt:apparmor=unconfined"}},
		{"no labels", Config{SecurityOpt: []string{"label=disable"}}, "security_opt", []string{"security-opt:label=disable"}},
		{"unmasked system paths", Config{SecurityOpt: []string{"systempaths=unconfined"}}, "security_opt", []string{"security-opt:systempaths=unconfined"}},
		{"new privileges", Config{SecurityOpt: []string{"no-new-privileges=false"}}, "security_opt", []string{"security-opt:no-new-privileges=false"}},
		{"device", Config{Devices: []string{"/dev/kvm"}}, "devices", []string{"device:/dev/kvm"}},
		{"gpus", Config{GPUs: "all"}, "gpus", nil},
		{"root", Config{User: "0"}, "user", []string{"user:0"}},
		{"root by name", Config{User: "root"}, "user", []string{"user:root"}},
		{"root's group", Config{User: "1000:0"}, "user", []string{"user:1000:0"}},
		{"user by name", Config{User: "nobody"}, "user", nil},
		{"more groups", Config{GroupAdd: []string{"docker"}}, "group_add", []string{"group:docker"}},
		{"writable system", Config{ReadOnly: &no}, "read_only", []string{"writable-system"}},
		{"unlimited memory", Config{Memory: -1}, "memory", []string{"memory:unlimited"}},
		{"too little memory", Config{Memory: 1000}, "memory", nil},
		{"swap", Config{MemorySwap: -1}, "memory_swap", []string{"memory-swap"}},
		{"unlimited processes", Config{PIDs: -1}, "pids", []string{"pids:unlimited"}},
		{"unlimited CPUs", Config{CPUs: -1}, "cpus", []string{"cpus:unlimited"}},
		{"unlimited open files", Config{Files: -1}, "files", []string{"files:unlimited"}},
		{"unlimited file size", Config{File: -1}, "file_size", []string{"file_size:unlimited"}},
		{"OOM killer disabled", Config{OOMDisable: true}, "oom_kill_disable", nil},
		{"nproc", Config{Ulimits: map[string]int64{"nproc": 10}}, "ulimits", nil},
		{"memlock", Config{Ulimits: map[string]int64{"memlock": -1}}, "ulimits", nil},
		{"sysctl", Config{Sysctls: map[string]string{"kernel.msgmax": "1"}}, "sysctls", []string{"sysctl:kernel.msgmax"}},
		{"unknown runtime", Config{Runtime: "nvidia"}, "runtime", []string{"runtime:nvidia"}},
		{"the whole host", Config{Volumes: []string{"/:/host:ro"}}, "volumes", []string{"volume:/"}},
		{"etc", Config{Volumes: []string{"/etc:/x:ro"}}, "volumes", []string{"volume:/etc"}},
		{"/etc by a path with dots", Config{Volumes: []string{"/srv/../etc/ssh:/x:ro"}}, "volumes", []string{"volume:/srv/../etc/ssh"}},
		{"/etc by a symbolic link", Config{Volumes: []string{home + ":/x:ro"}}, "volumes", []string{"volume:" + home}},
		{"proc", Config{Volumes: []string{"/proc:/x:ro"}}, "volumes", []string{"volume:/proc"}},
		{"sys", Config{Volumes: []string{"/sys/fs:/x:ro"}}, "volumes", []string{"volume:/sys/fs"}},
		{"var", Config{Volumes: []string{"/var:/x:ro"}}, "volumes", []string{"volume:/var"}},
		{"root's home", Config{Volumes: []string{"/root:/x:ro"}}, "volumes", []string{"volume:/root"}},
		{"/home", Config{Volumes: []string{"/home:/x:ro"}}, "volumes", []string{"volume:/home"}},
		{"keys", Config{Volumes: []string{"/home/me/.ssh:/x:ro"}}, "volumes", []string{"volume:/home/me/.ssh"}},
		{"engine socket", Config{Volumes: []string{"/var/run/docker.sock:/s:ro"}}, "volumes", []string{"volume:/var/run/docker.sock"}},
		{"engine socket elsewhere", Config{Volumes: []string{"/srv/podman.sock:/s:ro"}}, "volumes", []string{"volume:/srv/podman.sock"}},
		{"device by volume", Config{Volumes: []string{"/dev/null:/x:ro"}}, "volumes", []string{"volume:/dev/null"}},
		{"writable", Config{Volumes: []string{"/srv/data:/x"}}, "volumes", []string{"writable-volume:/srv/data"}},
		{"writable etc", Config{Volumes: []string{"/etc:/x:rw"}}, "volumes", []string{"volume:/etc", "writable-volume:/etc"}},
		{"named volume", Config{Volumes: []string{"cache:/x:ro"}}, "volumes", []string{"named-volume:cache"}},
		{"volume over /proc", Config{Volumes: []string{"/srv/data:/proc/sys:ro"}}, "volumes", nil},
		{"relative", Config{Volumes: []string{"./data:/x:ro"}}, "volumes", nil},
		{"volume without a target", Config{Volumes: []string{"/srv/data"}}, "volumes", nil},
		{"shared propagation", Config{Volumes: []string{"/srv/data:/x:ro,rshared"}}, "volumes", nil},
		{"volumes of another container", Config{VolumesFrom: []string{"web"}}, "volumes_from", nil},
		{"ports", Config{Ports: []string{"80:80"}}, "ports", nil},
		{"names", Config{ExtraHosts: []string{"a:host-gateway"}}, "extra_hosts", nil},
		{"restart", Config{Restart: "always"}, "restart", nil},
		{"log", Config{LogDriver: "json-file"}, "log_driver", nil},
		{"pull", Config{Pull: "always"}, "pull", nil},
		{"terminal", Config{TTY: true}, "tty", nil},
		{"shared memory", Config{ShmSize: 1 << 30}, "shm_size", nil},
		{"egress without a port", Config{Egress: []string{"example.com"}}, "egress", nil},
		{"egress to everywhere", Config{Egress: []string{"*:443"}}, "egress", nil},
		{"egress to a whole top-level domain", Config{Egress: []string{"*.com:443"}}, "egress", nil},
		{"egress with the former value none", Config{Egress: []string{"none"}}, "egress", nil},
		{"egress into the inner network", Config{Egress: []string{"10.0.0.5:80"}}, "egress", []string{"private:10.0.0.5:80"}},
		{"egress to the metadata address", Config{Egress: []string{"169.254.169.254:80"}}, "egress", nil},
		{"egress and a network", Config{Egress: []string{"example.com:443"}, Network: "bridge", Allow: []string{"network:bridge"}}, "egress", nil},
		{"egress with another runtime", Config{Egress: []string{"example.com:443"}, Runtime: "runsc"}, "egress", nil},
		{"tmpfs exceeds the limit", Config{Tmpfs: 1 << 40}, "tmpfs", nil},
		{"unlimited time", Config{Time: -1}, "time", nil},
		{"pool exceeds the limit", Config{Pool: 1000}, "pool", nil},
		{"no image", Config{Image: "-"}, "image", nil},
		{"URL as the image", Config{Image: "https://host/image"}, "image", nil},
		{"bad variable", Config{Env: map[string]string{"A=B": ""}}, "env", nil},
		{"bad argument", Config{Args: []string{"a\x00b"}}, "command", nil},
		{"bad folder", Config{Workdir: "here"}, "workdir", nil},
		{"allow without the setting that needs it", Config{Allow: []string{"privileged"}}, "allow", nil},
	}
}

func TestUnsafeSettingsAreRefusedUnlessAllowedByName(t *testing.T) {
	if _, err := Resolve("s", Config{Image: "image"}); err != nil {
		t.Fatalf("a sandbox with nothing special is refused: %v", err)
	}
	ways := weakenedSettings(t)
	t.Logf("%d ways", len(ways))
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			if w.c.Image == "" {
				w.c.Image = "image"
			}
			_, err := Resolve("s", w.c)
			var faults *Faults
			if !errors.As(err, &faults) || schema.KindOf(err) != schema.KindInvalidRequest {
				t.Fatalf("it is not refused: %v", err)
			}
			for _, f := range faults.List {
				if f.Key != w.key {
					t.Errorf("the fault is at %q: %s", f.Key, f.Text)
				}
				if !strings.HasSuffix(f.Text, ".") || len(f.Text) < 20 || strings.Contains(f.Text, "%!") {
					t.Errorf("no sentence: %q", f.Text)
				}
				for _, allow := range w.allow {
					if len(faults.List) == 1 && !strings.Contains(f.Text, `"`+allow+`"`) {
						t.Errorf("the sentence does not name %q: %s", allow, f.Text)
					}
				}
			}
			if len(faults.List) == 0 || !strings.Contains(err.Error(), `docker.`+w.key+` of the server "s"`) {
				t.Errorf("the error is %q", err)
			}
			if w.allow == nil {
				w.c.Allow = []string{w.key, "privileged", w.key + ":unlimited"}
				if _, err := Resolve("s", w.c); err == nil {
					t.Error("it can be allowed")
				}
				return
			}
			w.c.Allow = w.allow
			s, err := Resolve("s", w.c)
			if err != nil {
				t.Fatalf("it cannot be allowed: %v", err)
			}
			got := s.Widened()
			slices.Sort(got)
			slices.Sort(w.allow)
			if diff := cmp.Diff(w.allow, got); diff != "" {
				t.Errorf("shown as wider (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	_, err := Resolve("s", Config{Privileged: true, Network: "host", User: "root", Memory: -1})
	var faults *Faults
	if !errors.As(err, &faults) || len(faults.List) != 5 {
		t.Errorf("there are %v", err)
	}
}

func TestSandboxDescriptionHidesSecrets(t *testing.T) {
	s, err := Resolve("files", Config{
		Image: "files@sha256:1234", Volumes: []string{"/srv/nowhere:/data:ro"}, Network: "none", Env: map[string]string{"B": "secret", "A": "secret"},
		Command: "/server", Args: []string{"--token", "secret"}, Memory: 256 << 20, Pool: 3, Allow: []string{"writable-system"}, ReadOnly: new(bool),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, line := range s.Describe() {
		got.WriteString(line.From + "\t" + line.Key + "\t" + line.Value + "\n")
	}
	if strings.Contains(got.String(), "secret") {
		t.Error("it shows a secret")
	}
	const golden = "testdata/describe.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever is written, what is not refused must not be wider than the sandbox.
func FuzzAcceptedVolumesAreReadOnlyAndSafe(f *testing.F) {
	for _, seed := range []string{"/srv/data:/x:ro", "/:/x:ro", "/etc/../srv:/x:ro", "a:/x", "/srv:/x:ro:ro", "::", "//etc:/x:ro", "/srv/./../dev:/x:ro"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, volume string) {
		s, err := Resolve("s", Config{Image: "image", Volumes: []string{volume}})
		if err != nil {
			return
		}
		for _, m := range s.host.Mounts {
			look := hostpath.At(m.Source)
			if !m.ReadOnly || m.Type != "bind" || look.Sensitive || look.Socket || !filepath.IsAbs(m.Source) || m.Source != filepath.Clean(m.Source) {
				t.Errorf("%q became %+v", volume, m)
			}
		}
	})
}
