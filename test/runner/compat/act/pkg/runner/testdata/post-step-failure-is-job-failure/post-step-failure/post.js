console.log('This is a post step failure test');
process.exit(1);