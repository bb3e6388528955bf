package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

// approveOptions holds the command line of approve.
type approveOptions struct {
	yes    bool
	reason string
	edit   bool
	file   string // with the arguments that replace the call's arguments
}

// approveCall shows the exact call, asks for confirmation, and approves exactly that call.
func approveCall(ctx context.Context, c *client, id string, o approveOptions) error {
	a, args, _, err := readApproval(ctx, c, id)
	if err != nil {
		return err
	}
	terminal := isTerminal(c.in)
	if !terminal && o.edit {
		return fail(exitUsage, "--edit requires a terminal: pass the arguments with --arguments FILE.")
	}
	if !o.yes && (!terminal || o.file == "-") {
		return fail(exitUsage, "There is no terminal for a confirmation: review the call with `callyard approvals show %s`, then add --yes.", oneLine(id))
	}
	d := decisionBody{Kind: "approve", Reason: o.reason, Digest: a.Digest}
	switch {
	case o.edit:
		d.Arguments, err = editArguments(ctx, args, c.in)
	case o.file != "":
		given := "@" + o.file
		if o.file == "-" {
			given = o.file
		}
		d.Arguments, err = callArguments([]string{given}, c.in)
	}
	if err != nil {
		return err
	}
	if d.Arguments = bytes.TrimSpace(d.Arguments); len(d.Arguments) > 0 && !bytes.Equal(d.Arguments, bytes.TrimSpace(args)) {
		d.Kind, args, a.Edited = "edit", d.Arguments, true
		a.Digest = "" // the digest of the original arguments
	} else {
		d.Arguments = nil
	}
	if err := a.write(c.note, args); err != nil {
		return err
	}
	if !o.yes {
		if err := confirmed(ctx, c, "Run the call with exactly these arguments?", "Not approved; the call is still pending."); err != nil {
			return err
		}
	}
	return decideApproval(ctx, c, id, d)
}

// encode returns the body of the decision with the arguments byte for byte.
func (d *decisionBody) encode() ([]byte, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encoding the decision: %w", err)
	}
	if len(d.Arguments) > 0 {
		body = rawjson.With(body, "arguments", d.Arguments)
	}
	return body, nil
}

// editArguments opens the arguments in an editor. The temporary file is readable only by this user
// and is removed afterwards.
func editArguments(ctx context.Context, args []byte, terminal io.Reader) (edited []byte, err error) {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if editor == "" {
		return nil, fail(exitUsage, "--edit requires an editor: set EDITOR, or pass the arguments with --arguments FILE.")
	}
	dir, err := os.MkdirTemp("", "callyard-approve-")
	if err != nil {
		return nil, fail(exitUsage, "The arguments cannot be written for the editor: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "arguments.json")
	if err := os.WriteFile(path, []byte(pretty(args)+"\n"), 0o600); err != nil {
		return nil, fail(exitUsage, "The arguments cannot be written for the editor: %w", err)
	}
	// The variable may contain flags, as in git and other programs, so the shell parses it.
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	run.Stdin, run.Stdout, run.Stderr = terminal, os.Stderr, os.Stderr
	if err := run.Run(); err != nil {
		return nil, fail(exitRefused, "Not approved; the editor failed: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fail(exitUsage, "The edited arguments cannot be read: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(text), []byte(strings.TrimSpace(pretty(args)))) {
		return args, nil // unchanged, including whitespace
	}
	return object(bom.Trim(text), "The edited text")
}

// confirmed asks a question at the terminal. Every answer except "yes" fails with the text no.
func confirmed(ctx context.Context, c *client, question, no string) error {
	if err := c.note.text("\n" + question + " [y/N] "); err != nil {
		return err
	}
	line, err := untilInterrupt(ctx, func() (string, error) { return bufio.NewReader(c.in).ReadString('\n') })
	if ctx.Err() != nil {
		return fail(exitInterrupted, "Interrupted.")
	}
	if said := strings.ToLower(strings.TrimSpace(line)); err == nil && (said == "y" || said == "yes") {
		return nil
	}
	return fail(exitRefused, "%s", no)
}
