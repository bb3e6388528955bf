//go:build !linux

package chaos

import (
	"context"
	"errors"
)

const canCutPower = false

// disk is not supported here: power cuts need the loop mounts of Linux.
type disk struct{}

func newDisk(context.Context, string) (*disk, error) {
	return nil, errors.New("a power cut needs the loop mounts of Linux")
}

func (*disk) path() string                  { return "" }
func (*disk) copy(context.Context) error    { return nil }
func (*disk) swap(context.Context) error    { return nil }
func (*disk) unmount(context.Context) error { return nil }
func (*disk) fill() error                   { return nil }
func (*disk) empty() error                  { return nil }
