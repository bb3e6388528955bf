// Package dataset reads data sets into samples of package eval: JSON Lines in the published format,
// MCPToolBench++, BFCL version 4, tau2, and the tasks of training environments.
//
// An error contains the file, line and column. A sample without expected tools is accepted only if
// the data set declares it. Ids are unique. The package only reads files, and contains no data set.
package dataset
