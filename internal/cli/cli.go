// Package cli is the command line of callyard: `up` runs the whole fabric in one
// process, the other commands are clients of its REST API.
//
// It owns the parsing of the command line, the output and the exit codes. It guarantees that every
// error for people states the fault and the fix, and that text from a server reaches a terminal
// without control characters. It makes no decisions about a call: the REST API does.
//
// It is one package because its many commands, each with its flags, its text for people
// and its JSON, share the client, the screen and the exit codes. Work other than calls to the API
// is in other packages.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/buildinfo"
	"github.com/callyard/callyard/internal/demo"
	"github.com/callyard/callyard/internal/setup"
)

// Exit codes; see the documentation of the commands.
const (
	exitOK          = 0
	exitToolError   = 1
	exitUsage       = 2
	exitRefused     = 3
	exitUnreachable = 4
)

// rootCommand returns the whole command line.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "callyard",
		Short: "Run the tools of MCP servers, at scale and with approval where it is required",
		Long: "callyard runs tools of MCP servers behind one REST API.\n\n" +
			"`callyard up` starts everything in one process. The other commands connect to a running Callyard.",
		SilenceErrors: true, SilenceUsage: true,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().String("url", "", "address of Callyard (CALLYARD_URL, default http://127.0.0.1:8080)")
	root.PersistentFlags().String("key", "", "API key (CALLYARD_KEY, or a file named by CALLYARD_KEY_FILE)")
	addOutputFlags(root)
	root.AddCommand(upCommand(), initCommand(), configCommand(), policyCommand(), auditCommand(), slackCommand(), demoCommand(), hubCommand(), benchCommand(), evalCommand(), envCommand())
	root.AddCommand(mcpCommand(), doctorCommand(), versionCommand())
	root.AddCommand(clientCommands()...)
	root.AddCommand(approvalCommands()...)
	addLists(root)
	root.SetFlagErrorFunc(flagFault)
	root.SetHelpCommand(helpCommand())
	fitHelp(root)
	root.Version = buildinfo.Read().String()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n") // the same line as the command version
	return root
}

// Run executes the command line in args, which excludes the program name, and returns the exit
// code of the process. It uses the standard streams. Except in `up`, it ends at the first interrupt.
func Run(args []string) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if name := firstWord(args); name != "up" {
		// `up` handles signals itself: the first one drains.
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	root := rootCommand()
	knowCompletion(root)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	showError(os.Stderr, err)
	return exitCode(err)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			build, out := setup.BuildOf("callyard"), screenFor(cmd)
			if out.structured() {
				return out.value(build)
			}
			return build.Write(out.w, false)
		},
	}
}

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo-server",
		Short: "Run the demo MCP server on standard input and output",
		Args:  takes(0, 0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return demo.Serve(cmd.Context(), setup.Version()) },
	}
}

func firstWord(args []string) string {
	for _, a := range args {
		if len(a) > 0 && a[0] != '-' {
			return a
		}
	}
	return ""
}

func exitCode(err error) int {
	var e interface{ ExitCode() int }
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.ExitCode()
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitUsage
}

// isOutputFault reports whether the error is a failed write to standard output, for which a hint
// about the help is useless.
func isOutputFault(err error) bool {
	var fault *fs.PathError
	return errors.As(err, &fault) && fault.Op == "write" && fault.Path == os.Stdout.Name()
}

// showError prints an error for people. For a wrong command line it adds a hint about the help.
func showError(w io.Writer, err error) {
	if err == nil {
		return
	}
	text := strings.TrimRight(err.Error(), "\n")
	if text == "" { // already reported
		return
	}
	fmt.Fprintln(w, screenOf(w).sentences("callyard: "+text, 2))
	if exitCode(err) == exitUsage && !strings.Contains(text, "\n") && !isOutputFault(err) {
		fmt.Fprintln(w, "Try --help.")
	}
}
