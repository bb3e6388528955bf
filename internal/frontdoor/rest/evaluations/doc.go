// Package evaluations implements the operations that show the runs of callyard eval in a folder.
//
// A front door without such a folder answers like one that has no runs. The package does not read
// files; internal/eval/runs does, and restricts itself to the folder. The names of its types are the
// names of schemas in the OpenAPI document.
package evaluations
