package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/config"
)

// durationValue is a flag with a duration as configuration files have it, which may have days.
type durationValue time.Duration

// durationVar defines a flag with a duration of zero or more.
func durationVar(f *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f.Var((*durationValue)(d), name, usage)
}

// Set implements [pflag.Value].
func (d *durationValue) Set(text string) error {
	return (*config.Duration)(d).UnmarshalText([]byte(text))
}

// String implements [pflag.Value].
func (d *durationValue) String() string { return config.Duration(*d).String() }

// Type implements [pflag.Value].
func (d *durationValue) Type() string { return "duration" }
