package evalcharts

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/report"
	"github.com/callyard/callyard/internal/eval/rundir"
)

// Command is the first argument of callyard-bench that selects the charts.
const Command = "eval-charts"

// Main draws the charts of runs. Its arguments are LEVEL, the output folder, the folder of a
// run, and optionally the folder of another run.
func Main(args []string) error {
	if len(args) != 3 && len(args) != 4 || !slices.Contains(eval.Levels(), eval.Level(args[0])) {
		return errors.New("usage: callyard-bench " + Command + " LEVEL PNG_DIR RUN_DIR [OTHER_RUN_DIR]")
	}
	c := &Charts{Level: eval.Level(args[0]), Title: filepath.Base(filepath.Clean(args[2]))}
	var err error
	if c.Report, err = read(args[2]); err != nil {
		return err
	}
	if len(args) == 4 {
		c.OtherTitle = filepath.Base(filepath.Clean(args[3]))
		if c.Other, err = read(args[3]); err != nil {
			return err
		}
	}
	return c.Write(args[1])
}

func read(dir string) (*report.Report, error) {
	path := filepath.Join(dir, "report.json")
	r, err := rundir.ReadReport(path)
	if err == nil && (len(r.Levels) != len(eval.Levels()) || len(r.Levels[0].Categories) == 0) {
		err = fmt.Errorf("%s is not a whole report", path)
	}
	return r, err
}
