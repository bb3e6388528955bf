package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^[ ]*```sh\n(.*?)^[ ]*```$")
	// invocation matches `callyard` as a command, with the rest of the same command.
	invocation = regexp.MustCompile(`(?:^|[;&|(]\s*|\s(?:\w+=\S*\s+)*)(?:bin/|go run \./cmd/)?callyard( [^;&|)\n]*)?`)
	// word matches one word of a command: quoted text, or text without spaces.
	word = regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`)
)

// docsCommands returns each command of the program in the shell blocks of a page.
func docsCommands(page string) (commands [][]string) {
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		text := strings.ReplaceAll(block[1], "\\\n", " ")
		for line := range strings.Lines(text) {
			if at := strings.Index(line, " #"); at >= 0 {
				line = line[:at]
			}
			for _, m := range invocation.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
				if strings.Contains(m[1], "<TAB>") {
					continue // it shows a key to press
				}
				var args []string
				for _, w := range word.FindAllString(m[1], -1) {
					if strings.HasPrefix(w, ">") || strings.HasPrefix(w, "<") || strings.HasPrefix(w, "2>") {
						break
					}
					args = append(args, strings.NewReplacer(`"`, "", `'`, "").Replace(w))
				}
				commands = append(commands, args)
			}
		}
	}
	return commands
}

// misused returns the fault of a command line: an unknown command or flag, or a wrong number
// of arguments. It runs nothing.
func misused(args []string) error {
	root := rootCommand()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestEveryCommandOfTheDocsIsValid reads the shell blocks of README.md and docs. Tests of e2e
// run the blocks (docs_blocks_test.go there); this one finds a mistyped command or flag in a
// second, and in blocks that readers adapt.
func TestEveryCommandOfTheDocsIsValid(t *testing.T) {
	root := filepath.Join("..", "..")
	pages := []string{filepath.Join(root, "README.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range docsCommands(string(text)) {
			checked++
			if err := misused(args); err != nil {
				t.Errorf("%s: callyard %s: %v", name, strings.Join(args, " "), err)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d commands were found", checked)
	}
}

func TestInvalidCommandInTheDocsIsReported(t *testing.T) {
	page := "```sh\ngo run ./cmd/callyard up --demo-approvals    # callyard is a comment\nA=b callyard call demo add '{\"a\": 2}' --no-such | jq; callyard nothing\ncallyard servers show > out\n```\n```text\ncallyard text\n```\n"
	commands := docsCommands(page)
	if len(commands) != 4 {
		t.Fatalf("%q", commands)
	}
	for i, wrong := range []bool{false, true, true, true} {
		if err := misused(commands[i]); (err != nil) != wrong {
			t.Errorf("%q: %v", commands[i], err)
		}
	}
}
