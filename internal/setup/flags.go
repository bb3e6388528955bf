package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/buildinfo"
)

// Build identifies the build of a program.
type Build struct {
	Program string `json:"program"`
	buildinfo.Info
	GoVersion string `json:"go_version"`
	Platform  string `json:"platform"`
}

// BuildOf returns the running build. name is the name of the program.
func BuildOf(name string) Build {
	return Build{Program: name, Info: buildinfo.Read(), GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// Write prints the build on one line, as JSON if asked.
func (b Build) Write(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(b)
	}
	_, err := fmt.Fprintf(w, "%s %s\n", b.Program, b.Info)
	return err
}

// parseFlags adds --version to fs and parses args. fs must continue on error. It returns false if
// the program has nothing more to do, with the exit code: after --help, --version and the word
// version, and after an invalid command line, whose error it prints.
func parseFlags(fs *pflag.FlagSet, args []string, stdout, stderr io.Writer) (goOn bool, code int) {
	version := fs.Bool("version", false, "print the version and exit; the argument version does the same")
	asJSON := fs.Bool("json", false, "with --version: as JSON")
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintf(stderr, "Usage: %s [flags]\n%s", fs.Name(), fs.FlagUsages())
	}
	err := fs.Parse(args)
	switch rest := fs.Args(); {
	case errors.Is(err, pflag.ErrHelp):
		return false, 0
	case err != nil:
	case *version || len(rest) == 1 && rest[0] == "version":
		if err = BuildOf(fs.Name()).Write(stdout, *asJSON); err == nil {
			return false, 0
		}
	case len(rest) > 0:
		err = fmt.Errorf("%q is not a flag: use flags, CALLYARD_ variables or keys in the file of --config", rest[0])
	case *asJSON:
		err = errors.New("--json can be used only with --version; for logs as JSON use --log-format json")
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\nTry --help.\n", fs.Name(), err)
		return false, 2
	}
	return true, 0
}
