console.log('pre');
