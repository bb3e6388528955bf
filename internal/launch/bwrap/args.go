package bwrap

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Descriptors that bwrap inherits in addition to its standard streams. It closes them before the
// server runs.
const (
	infoFD   = 3 // bwrap writes the pid of the sandbox's first process to it
	blockFD  = 4 // bwrap reads from it before it starts the server
	filterFD = 5 // the seccomp filter
)

// insideID is the user id inside a sandbox.
const insideID = "65534"

// system are folders with the programs of the machine. Links among them are links inside as well.
var system = [...]string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// harmless are files of /etc that programs need to start and to know the time zone.
var harmless = [...]string{"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"}

// dropped are variables that package launch adds and a sandbox does not get. A sandbox keeps the mark of
// its worker's processes: --die-with-parent has no effect on a sandbox whose bwrap ends before the server
// starts, and the worker or its reaper finds such a sandbox by the mark.
var dropped = [...]string{"USER", "TMPDIR"}

// bindsNow returns the host paths that the sandbox shows, resolved, because bwrap follows the links
// that exist when it mounts. It returns an error if a path leads to another place than the one
// checked.
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

// stillThere returns an error if a shown path is not the one checked: it may have been replaced between
// the check and the mount.
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

// args returns the command line of bwrap with these volumes. It contains no value of the environment,
// because every user of the machine can read it.
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
	// /dev and / are in memory and would otherwise be writable.
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

// env returns the environment of bwrap, which it passes on. It sets every variable that package launch
// would otherwise take from the worker, except the dropped ones.
func (s *Spec) env() map[string]string {
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC"}
	maps.Copy(env, s.program.Env)
	return env
}
