package cli

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/tenants/datakey"
	"github.com/callyard/callyard/pkg/bus"
)

func encryptionKeysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encryption",
		Short: "Show which keys of credentials.key_file and encryption.key_file are in use",
		Long: "encryption counts what is stored in NATS by the key of credentials.key_file or encryption.key_file that encrypts it. A key that is not in use, and is not the first\n" +
			"one, can be removed from its file. It reads the configuration of a front door or approver with its key files, and signs in to NATS as a user that\n" +
			"can read the tables: the operator of deploy/nats. With --data it reads the data folder of a `callyard up` that is not running.",
		Example: "  CALLYARD_NATS_USER=operator CALLYARD_NATS_PASSWORD_FILE=operator.password callyard keys encryption --config callyard.yaml",
		Args:    takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStored(cmd, !cmd.Flags().Lookup("data").Changed, func(ctx context.Context, cfg *setup.Config, conn *bus.Conn, log *slog.Logger) error {
				return showEncryptionKeys(ctx, screenFor(cmd), cfg, conn, log)
			})
		},
	}
	setup.AddFlags(cmd.Flags(), "nats", "data")
	return cmd
}

// encryptionKey is a key of a key file, or one that encrypts something and is in no file.
type encryptionKey struct {
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	Key   string `json:"key"`
	State string `json:"state"` // newest, in use, unused or missing
	Rows  int    `json:"rows"`
}

func showEncryptionKeys(ctx context.Context, out screen, cfg *setup.Config, conn *bus.Conn, log *slog.Logger) error {
	credentials, encryption := cfg.File.Credentials.KeyFile, cfg.File.Encryption.KeyFile
	if credentials == "" && encryption == "" {
		return fail(exitUsage, "The configuration has neither credentials.key_file nor encryption.key_file: nothing is encrypted with them.")
	}
	counts, err := countRows(ctx, cfg, conn, log)
	if err != nil {
		return fail(exitUnreachable, "%w", err)
	}
	files := map[string]map[string]int{} // one file may be both
	for _, of := range []struct {
		file   string
		counts []map[string]int
	}{{credentials, counts[:2]}, {encryption, counts[2:]}} {
		if files[of.file] == nil {
			files[of.file] = map[string]int{}
		}
		for _, c := range of.counts {
			for name, n := range c {
				files[of.file][name] += n
			}
		}
	}
	all := []encryptionKey{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		found, err := keysOfFile(file, files[file])
		if err != nil {
			return fail(exitUsage, "%w", err)
		}
		all = append(all, found...)
	}
	return out.encryptionKeys(all)
}

// countRows returns the numbers of stored rows by key: of credentials, of grants, and of data keys.
func countRows(ctx context.Context, cfg *setup.Config, conn *bus.Conn, log *slog.Logger) ([]map[string]int, error) {
	ring, err := cfg.DataKeys(ctx, conn, false, log)
	if err != nil {
		return nil, err
	}
	defer ring.Close()
	people, err := credential.CountKeys(ctx, conn, ring)
	if err != nil {
		return nil, fmt.Errorf("counting stored credentials: %w", err)
	}
	grants, err := authserver.CountKeys(ctx, conn, ring)
	if err != nil {
		return nil, fmt.Errorf("counting grants of the authorization server: %w", err)
	}
	data, err := datakey.CountKeys(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("counting data keys: %w", err)
	}
	return []map[string]int{people, grants, data}, nil
}

// keysOfFile returns the keys of a file, and those with rows that the file does not have. "" is a file
// that is not configured.
func keysOfFile(file string, rows map[string]int) (all []encryptionKey, err error) {
	rows = maps.Clone(rows)
	if file != "" {
		keys, err := credential.LoadKeys(file)
		if err != nil {
			return nil, err
		}
		for i, k := range keys.Lines() {
			one := encryptionKey{File: file, Line: k.Line, Key: k.Name, State: "unused", Rows: rows[k.Name]}
			switch {
			case i == 0:
				one.State = "newest"
			case one.Rows > 0:
				one.State = "in use"
			}
			all = append(all, one)
		}
		for _, k := range all {
			delete(rows, k.Key)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, encryptionKey{File: file, Key: name, State: "missing", Rows: rows[name]})
	}
	return all, nil
}

func (s screen) encryptionKeys(all []encryptionKey) error {
	if s.structured() {
		return s.value(all)
	}
	rows := make([][]cell, len(all))
	for i, k := range all {
		line := ""
		if k.Line > 0 {
			line = fmt.Sprint(k.Line)
		}
		rows[i] = cells(k.State, fmt.Sprint(k.Rows), line, k.Key, k.File)
	}
	return s.table([]string{"STATE", "ROWS", "LINE", "KEY", "FILE"}, rows)
}
