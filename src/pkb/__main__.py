from pkb.cli import main

main()
