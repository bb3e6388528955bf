package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// disk is a file system in a file. Writes reach the file when they are synced, or
// when the kernel writes them back; the mount option commit delays the latter.
// A copy of the file has the content that a disk would have after a power cut.
type disk struct {
	dir   string
	count int
}

const diskBytes = 512 << 20

// canCutPower reports that this system supports power cuts.
const canCutPower = true

// newDisk creates an empty disk below dir. Mounting needs root, or sudo without a
// password.
func newDisk(ctx context.Context, dir string) (*disk, error) {
	d := &disk{dir: dir}
	f, err := os.Create(d.image())
	if err == nil {
		err = f.Truncate(diskBytes)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("making the disk image: %w", err)
	}
	if err := command(ctx, "mkfs.ext4", "-q", "-F", d.image()); err != nil {
		return nil, err
	}
	return d, d.mount(ctx)
}

func (d *disk) image() string { return filepath.Join(d.dir, fmt.Sprintf("disk-%d.img", d.count)) }

// path returns the current mount point of the disk.
func (d *disk) path() string { return filepath.Join(d.dir, fmt.Sprintf("disk-%d", d.count)) }

func (d *disk) mount(ctx context.Context) error {
	if err := os.MkdirAll(d.path(), 0o700); err != nil {
		return fmt.Errorf("making the mount point: %w", err)
	}
	if err := asRoot(ctx, "mount", "-o", "loop,commit=300,noatime", d.image(), d.path()); err != nil {
		return err
	}
	return asRoot(ctx, "chown", strconv.Itoa(os.Geteuid()), d.path())
}

// copy copies the current content of the disk. Nothing may write to it in the meantime:
// freeze its users first.
func (d *disk) copy(ctx context.Context) error {
	next := disk{dir: d.dir, count: d.count + 1}
	return command(ctx, "cp", "--sparse=always", "--reflink=never", d.image(), next.image())
}

// swap replaces the disk with the copy. Its users must have ended.
func (d *disk) swap(ctx context.Context) error {
	if err := d.unmount(ctx); err != nil {
		return err
	}
	d.count++
	return d.mount(ctx)
}

// fill fills the disk completely.
func (d *disk) fill() (err error) {
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("filling the disk: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	at := int64(0)
	for piece := int64(64 << 20); piece >= 4<<10; {
		switch err := unix.Fallocate(int(f.Fd()), 0, at, piece); {
		case err == nil:
			at += piece
		case errors.Is(err, unix.ENOSPC):
			piece /= 2
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("filling the disk: %w", err)
		}
	}
	return nil
}

// empty frees the space again.
func (d *disk) empty() error {
	if err := os.Remove(d.ballast()); err != nil {
		return fmt.Errorf("making room on the disk: %w", err)
	}
	return nil
}

func (d *disk) ballast() string { return filepath.Join(d.path(), "ballast") }

// unmount unmounts the disk.
func (d *disk) unmount(ctx context.Context) error {
	if err := asRoot(ctx, "umount", d.path()); err != nil {
		return err
	}
	if err := os.Remove(d.image()); err != nil {
		return fmt.Errorf("removing the disk image: %w", err)
	}
	return nil
}

func asRoot(ctx context.Context, name string, args ...string) error {
	if os.Geteuid() == 0 {
		return command(ctx, name, args...)
	}
	return command(ctx, "sudo", append([]string{"-n", name}, args...)...)
}

func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
