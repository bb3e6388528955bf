// Package dataset reads data sets into samples of package eval: JSON Lines in the published
// shape, MCPToolBench++, BFCL version 4, and tau2.
//
// It promises that an error names file, line and column; that a sample without expected tools
// is read only where the data set says so; and that ids are unique. It reads files alone, and
// ships no data set.
package dataset
