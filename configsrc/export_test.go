package configsrc

// LockFolder says that a write is under way.
var LockFolder = lockFolder
