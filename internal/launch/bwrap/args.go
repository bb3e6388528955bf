package bwrap

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// The descriptors that bwrap finds open besides its standard streams. It closes
// them before the server runs.
const (
	infoFD   = 3 // where it writes which process is the first of the sandbox
	blockFD  = 4 // what it reads before it starts the server
	filterFD = 5 // the seccomp filter
)

// insideID is the user that a sandbox sees itself as.
const insideID = "65534"

// system are folders with the programs of the machine; what is a link there is one
// inside.
var system = [...]string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// harmless are files of /etc that programs need to be started and to tell the time.
var harmless = [...]string{"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"}

// dropped are variables that package launch adds, which a sandbox does not get.
var dropped = [...]string{"CALLYARD_COOKIE", "USER", "TMPDIR"}

// bindsNow returns what the sandbox shows of the host, resolved: bwrap follows
// whatever is there. It is an error when a path leads elsewhere than what was checked.
func (s *Spec) bindsNow() ([]bind, error) {
	binds := slices.Clone(s.binds)
	for i := range binds {
		var err error
		if binds[i].host, err = binds[i].place.Now(); err != nil {
			return nil, err
		}
	}
	return binds, nil
}

// stillThere says that what the sandbox shows is what was checked: it may have been
// replaced between the look and the mount.
func (s *Spec) stillThere(shown []bind) error {
	now, err := s.bindsNow()
	if err != nil {
		return err
	}
	for i := range now {
		if now[i].host != shown[i].host {
			return fmt.Errorf("its volume %s resolved to %s when it was created, and now resolves to %s", now[i].inside, shown[i].host, now[i].host)
		}
	}
	return nil
}

// args returns the command line of bwrap, with these volumes. It holds no value of
// the environment: any user of the machine may read it.
func (s *Spec) args(binds []bind) []string {
	a := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup", "--disable-userns", "--as-pid-1",
		"--uid", insideID, "--gid", insideID, "--hostname", "sandbox", "--cap-drop", "ALL", "--die-with-parent", "--new-session",
		"--ro-bind", "/usr", "/usr",
	}
	for _, dir := range system {
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 {
			if target, err := os.Readlink(dir); err == nil {
				a = append(a, "--symlink", target, dir)
			}
			continue
		}
		a = append(a, "--ro-bind", dir, dir)
	}
	for _, file := range harmless {
		a = append(a, "--ro-bind-try", file, file)
	}
	// /dev and / are in memory as well, and would be places to write to.
	a = append(a, "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--perms", "1777", "--size", strconv.FormatInt(s.tmpfs, 10), "--tmpfs", "/tmp")
	for _, b := range binds {
		a = append(a, "--ro-bind", b.host, b.inside)
	}
	a = append(a, "--remount-ro", "/", "--chdir", filepath.Clean(s.program.Dir))
	for _, name := range dropped {
		if _, own := s.program.Env[name]; !own {
			a = append(a, "--unsetenv", name)
		}
	}
	a = append(a, "--info-fd", strconv.Itoa(infoFD), "--block-fd", strconv.Itoa(blockFD), "--seccomp", strconv.Itoa(filterFD), "--", s.program.Command)
	return append(a, s.program.Args...)
}

// env is what bwrap is started with, and passes on. It covers every variable that
// package launch would take from the worker and that is not dropped.
func (s *Spec) env() map[string]string {
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC"}
	maps.Copy(env, s.program.Env)
	return env
}
