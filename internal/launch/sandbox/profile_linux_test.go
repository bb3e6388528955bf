package sandbox

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// families are the kinds of sockets that servers need: unix, inet, inet6 and
// netlink. AF_ALG, AF_VSOCK, AF_XDP and the like open much more of the kernel.
var families = []uint64{1, 2, 10, 16}

// dropped are system calls that Moby allows and no server needs.
var dropped = []string{
	"socketcall",                                      // its arguments cannot be looked at
	"ptrace", "process_vm_readv", "process_vm_writev", // other processes of the container
	"io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key", "userfaultfd",
}

// narrowed returns Moby's profile with less.
func narrowed() *seccomp.Seccomp {
	p := seccomp.DefaultProfile()
	for i := range p.ArchMap {
		p.ArchMap[i].SubArches = nil // 32-bit calls have numbers and arguments of their own
	}
	var rules []*seccomp.Syscall
	for _, rule := range p.Syscalls {
		if rule.Action == specs.ActAllow && !conditional(rule) || rule.Includes != nil && rule.Includes.MinKernel != nil {
			rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return slices.Contains(dropped, name) })
		}
		if slices.Equal(rule.Names, []string{"socket"}) && !conditional(rule) || len(rule.Names) == 0 {
			continue
		}
		rules = append(rules, rule)
	}
	for _, family := range families {
		rule := &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
			Names: []string{"socket"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: family, Op: specs.OpEqualTo}},
		}}
		rules = append(rules, rule)
	}
	p.Syscalls = rules
	return p
}

func conditional(rule *seccomp.Syscall) bool {
	return rule.Includes != nil && (len(rule.Includes.Caps) > 0 || len(rule.Includes.Arches) > 0)
}

func TestSeccompProfileMatchesNarrowedMobyProfile(t *testing.T) {
	want, err := json.MarshalIndent(narrowed(), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("profile.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("profile.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("profile.json is not what Moby's profile gives now; look at the difference and run with -update (-want +got):\n%s", diff)
	}
}

// Which calls a container without capabilities may make is what counts.
func TestSeccompProfileAllowsNoDroppedSystemCall(t *testing.T) {
	var p seccomp.Seccomp
	if err := json.Unmarshal([]byte(profile), &p); err != nil {
		t.Fatal(err)
	}
	if p.DefaultAction != specs.ActErrno {
		t.Errorf("what the profile does not name is answered with %s", p.DefaultAction)
	}
	forbidden := append([]string{"mount", "umount2", "bpf", "perf_event_open", "init_module", "finit_module", "kexec_load", "reboot", "setns", "open_by_handle_at", "pivot_root", "swapon"}, dropped...)
	seen := 0
	for _, rule := range p.Syscalls {
		if rule.Action != specs.ActAllow || rule.Includes != nil && len(rule.Includes.Caps) > 0 {
			continue
		}
		for _, name := range rule.Names {
			seen++
			if slices.Contains(forbidden, name) {
				t.Errorf("the profile allows %s", name)
			}
			if name == "socket" && (len(rule.Args) != 1 || rule.Args[0].Op != specs.OpEqualTo || !slices.Contains(families, rule.Args[0].Value)) {
				t.Errorf("the profile allows more sockets than it should: %+v", rule.Args)
			}
		}
	}
	if seen < 200 {
		t.Errorf("the profile allows %d system calls; no program can run with so few", seen)
	}
	for _, arch := range p.ArchMap {
		if len(arch.SubArches) > 0 {
			t.Errorf("the profile lets %s through as well as %s", arch.SubArches, arch.Arch)
		}
	}
	if strings.Contains(profile, "\n") {
		t.Error("the profile travels with white space")
	}
}
