// Package evaluations has the operations that show the runs of callyard eval in a folder.
//
// It promises that a front door without such a folder answers like one that has no runs with
// any name. It refuses to read files; internal/eval/runs does, and keeps to the folder. The
// names of its types are the names of schemas in the OpenAPI document.
package evaluations
