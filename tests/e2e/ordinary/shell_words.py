import getopt
import shlex

print(shlex.split("a 'b c' \"d e\" f\\ g # not", comments=True), shlex.quote("it's"), shlex.join(["a b", "c"]))
print(getopt.getopt(["-v", "--name=x", "rest"], "v", ["name="]))
