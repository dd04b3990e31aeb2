// Package cli holds what all commands of the program share, so that a command only parses, calls and prints:
//
//   - exit codes and the errors that carry them: No (1), Usage (2); any other error is 3, "could not run";
//   - the Terminal, a command's input and outputs, with a display of progress where a person looks on;
//   - the checks of arguments, and a suggestion for a command or a flag that was misspelt;
//   - the environment: each flag has a variable FINGERPOST_NAME, and the command line wins;
//   - flags that many commands have: which server to ask, with which key, and for how long;
//   - what the shell completes, from the files of --config.
//
// It needs cobra, and knows no command. It calls no server: ConnectFlags and RemoteFlags only make a client. Nothing here
// ends the process; main does, with the code of the error that a command returns.
package cli
